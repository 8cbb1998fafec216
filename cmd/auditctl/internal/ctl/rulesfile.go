// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/hooks/install"
	"github.com/tripline-sh/tripline/tripwires"
)

// rulesChange is a planned change of one file of the rules directory.
type rulesChange struct {
	path, target string // as it is called, and with links resolved
	old, new     []byte // old is nil if there is no file
}

// planRules reads what a file of the rules directory holds now.
func planRules(p config.Places, name string) (*rulesChange, error) {
	c := &rulesChange{path: filepath.Join(p.RulesDir, name)}
	c.target = c.path
	if real, err := filepath.EvalSymlinks(c.path); err == nil {
		c.target = real // a link is not ours to break
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, failf("", "%v", err)
	} else if _, err := os.Lstat(c.path); err == nil {
		return nil, failf("remove the link, or make what it points to", "%s is a link to nothing", c.path)
	}
	f, err := tripwires.ReadRulesFile(c.target, tripwires.LayerUser)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return nil, failf("", "%v", err)
	}
	if c.old = f.Data; c.old == nil {
		c.old = []byte{}
	}
	return c, nil
}

// check loads all rules as they would be with the change.
func (c *rulesChange) check(p config.Places) (*tripwires.Set, error) {
	files, err := tripwires.ReadRulesDir(p.RulesDir, tripwires.LayerUser)
	if err != nil {
		return nil, failf("", "%v", err)
	}
	at := len(files)
	for i, f := range files {
		if f.Path == c.path {
			at = i
			files[i].Data = c.new
		} else if at == len(files) && f.Path > c.path {
			at = i
			files = append(files[:i:i], append([]tripwires.File{{Path: c.path, Layer: tripwires.LayerUser, Data: c.new}}, files[i:]...)...)
			break
		}
	}
	if at == len(files) {
		files = append(files, tripwires.File{Path: c.path, Layer: tripwires.LayerUser, Data: c.new})
	}
	set, err := tripwires.Load(files)
	if err != nil {
		return nil, failf("nothing was written", "%v", err)
	}
	return set, nil
}

// agree shows the change and asks for a person's word. Without it err says why nothing was done; a dry run has no error.
func (c *rulesChange) agree(a *app, dryRun, yes bool) (bool, error) {
	fmt.Fprint(a.Out, show.Text((&install.Change{Path: c.path, Old: c.old, New: c.new}).Diff(), 0))
	switch {
	case dryRun:
		fmt.Fprintln(a.Err, "nothing was written (dry run)")
		return false, nil
	case yes:
		return true, nil
	case !a.InTTY:
		return false, failf("look at the change above and run it again in a terminal, or with --yes", "a person's word is needed to change %s", c.path)
	}
	fmt.Fprintf(a.Err, "write this to %s? Type yes: ", show.Line(c.path, 500))
	line, err := bufio.NewReader(io.LimitReader(a.In, 1024)).ReadString('\n')
	if strings.TrimSpace(line) != "yes" || err != nil {
		return false, failf("", "not confirmed: nothing was written")
	}
	return true, nil
}

// write puts the new bytes in place, if the file is still the one that was planned for.
func (c *rulesChange) write() error {
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return failf("", "%v", err)
	}
	now, err := tripwires.ReadRulesFile(c.target, tripwires.LayerUser)
	if c.old == nil && !errors.Is(err, fs.ErrNotExist) || c.old != nil && (err != nil || !bytes.Equal(now.Data, c.old)) {
		return failf("run it again", "%s changed in the meantime: nothing was written", c.path)
	}
	if err := renameio.WriteFile(c.target, c.new, 0o600, renameio.IgnoreUmask()); err != nil {
		return failf("", "nothing was written: %v", err)
	}
	return nil
}

// yamlText quotes a text for a rules file: as JSON does it, which YAML reads alike.
func yamlText(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&escaping{&b})
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a text always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
