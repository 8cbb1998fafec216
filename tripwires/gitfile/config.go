// SPDX-License-Identifier: Apache-2.0

package gitfile

import (
	"crypto/sha1" //nolint:gosec // it is what git names objects by, not a protection of ours
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/view"
)

// config is what of a repository's configuration says how to read its index.
type config struct {
	hashSize   int
	ignoreCase bool
	worktree   string
}

// readConfig reads the repository's own file. Included files are not read: git does not take these keys from there
// either, but for ignoreCase, which only makes us find more.
func readConfig(r view.Reader, name string) (config, error) {
	data, err := r.ReadFile(name, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return config{hashSize: sha1.Size}, nil
	}
	if err != nil {
		return config{}, err
	}
	return parseConfig(string(data))
}

func parseConfig(text string) (config, error) {
	c := config{hashSize: sha1.Size}
	section := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "["); ok {
			name, after, ok := strings.Cut(rest, "]")
			if !ok {
				return config{}, errors.New("a section of the configuration does not end")
			}
			section, line = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(after)
		}
		key, value, assigned := strings.Cut(line, "=")
		if i := strings.IndexAny(value, "#;"); i >= 0 {
			value = value[:i]
		}
		value = strings.Trim(strings.TrimSpace(value), `"`)
		switch section + "." + strings.ToLower(strings.TrimSpace(key)) {
		case "extensions.objectformat":
			switch strings.ToLower(value) {
			case "sha1":
				c.hashSize = sha1.Size
			case "sha256":
				c.hashSize = sha256.Size
			default:
				return config{}, fmt.Errorf("unknown object format %.20q", value)
			}
		case "core.ignorecase":
			c.ignoreCase = !assigned || isTrue(value)
		case "core.worktree":
			c.worktree = value
		}
	}
	return c, nil
}

func isTrue(v string) bool {
	switch strings.ToLower(v) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}
