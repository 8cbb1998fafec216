// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml"
)

// Limits of the file, checked before it is parsed: a YAML parser fed with nesting takes memory without bound.
const (
	maxFile  = 16 << 10
	maxDepth = 8
)

// file is the form of tripline.yaml. Pointers tell an absent key from an empty one.
type file struct {
	Mode     *string `yaml:"mode"`
	Profile  *string `yaml:"profile"`
	OnDown   *string `yaml:"on_down"`
	Gate     *string `yaml:"gate"`
	Hold     *string `yaml:"hold"`
	Unmapped *string `yaml:"unmapped"`
	Metrics  *struct {
		Listen *string `yaml:"listen"`
	} `yaml:"metrics"`
	Log *struct {
		Retention *string `yaml:"retention"`
	} `yaml:"log"`
}

// Load reads the configuration file at path. An absent file is the default configuration. Errors name the file, and the
// line and column where the parser knows them.
func Load(path string) (Config, error) {
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Default(), nil
	}
	if err != nil {
		return Config{}, err
	}
	c, err := Parse(data)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Parse reads a configuration from YAML. Unknown and repeated keys are errors.
func Parse(data []byte) (Config, error) {
	if err := checkShape(data); err != nil {
		return Config{}, err
	}
	var f file
	if err := yaml.UnmarshalWithOptions(data, &f, yaml.Strict()); err != nil && !errors.Is(err, io.EOF) {
		return Config{}, fmt.Errorf("%s", strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	c := Default()
	values := []struct {
		key   string
		value *string
	}{
		{"mode", f.Mode}, {"profile", f.Profile}, {"on_down", f.OnDown}, {"gate", f.Gate},
		{"hold", f.Hold}, {"unmapped", f.Unmapped},
	}
	if f.Metrics != nil {
		values = append(values, struct {
			key   string
			value *string
		}{"metrics.listen", f.Metrics.Listen})
	}
	if f.Log != nil {
		values = append(values, struct {
			key   string
			value *string
		}{"log.retention", f.Log.Retention})
	}
	for _, v := range values {
		if v.value == nil {
			continue
		}
		if err := c.Set(v.key, *v.value); err != nil {
			return Config{}, err
		}
	}
	return c, nil
}

// readFile reads a small regular file without ever blocking on what else could stand at its path.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, maxFile)
	}
	return data, nil
}

// checkShape bounds size and nesting without parsing. It does not know quoting, so it may refuse a file that only quotes
// many brackets; no sensible configuration does.
func checkShape(data []byte) error {
	if len(data) > maxFile {
		return fmt.Errorf("larger than %d bytes", maxFile)
	}
	line, flow := 1, 0
	lineStart := true
	indent, dashes := 0, 0
	for _, b := range data {
		switch b {
		case '\n':
			line++
			lineStart, indent, dashes = true, 0, 0
			continue
		case '[', '{':
			flow++
		case ']', '}':
			flow = max(0, flow-1)
		case ' ', '\t':
			if lineStart {
				indent++
			}
			continue
		case '-', '?', ':', '&', '*', '!':
			dashes++
		}
		if b != '-' && b != '?' {
			lineStart = false
		}
		if flow > maxDepth || indent > 8*maxDepth || dashes > 8*maxDepth {
			return fmt.Errorf("line %d: nested deeper than %d levels", line, maxDepth)
		}
	}
	return nil
}
