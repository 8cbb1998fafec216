// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// Bounds of a settings file. The parser recurses, so what opens an array or object is counted before it runs.
const (
	maxSettings = 1 << 20
	maxOpeners  = 10_000
)

// Errors of ParseSettings. They never hold content: settings may carry secrets.
var (
	ErrSettingsEmpty  = errors.New("the file is empty, which is not valid JSON")
	ErrSettingsBOM    = errors.New("the file starts with a byte order mark")
	ErrSettingsSize   = errors.New("the file is too large or too deeply nested")
	ErrSettingsUTF8   = errors.New("the file is not UTF-8")
	ErrSettingsSyntax = errors.New("the file is not valid JSON")
	ErrSettingsShape  = errors.New("the file does not hold a JSON object")
)

// ParseSettings parses a settings file: one JSON object, comments and trailing commas tolerated. The value aliases b.
func ParseSettings(b []byte) (hujson.Value, error) {
	switch {
	case len(b) > maxSettings || bytes.Count(b, []byte("{"))+bytes.Count(b, []byte("[")) > maxOpeners:
		return hujson.Value{}, ErrSettingsSize
	case !utf8.Valid(b):
		return hujson.Value{}, ErrSettingsUTF8
	case len(bytes.TrimSpace(b)) == 0:
		return hujson.Value{}, ErrSettingsEmpty
	case bytes.HasPrefix(b, []byte("\ufeff")):
		return hujson.Value{}, ErrSettingsBOM
	}
	v, err := hujson.Parse(b)
	if err != nil {
		return hujson.Value{}, ErrSettingsSyntax // the parser's own text quotes content
	}
	if v.Value.Kind() != '{' {
		return hujson.Value{}, ErrSettingsShape
	}
	return v, nil
}

// SettingsFile reports whether path is a settings file of the client that can carry hooks: of a user, of a project, or
// managed. homes are the known home directories; the first one is what a leading ~ means. Names are compared without case,
// since some disks do.
func SettingsFile(path string, homes []string) bool {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && len(homes) > 0 {
		path = filepath.Join(homes[0], rest)
	}
	path = filepath.Clean(path)
	dir, name := filepath.Dir(path), strings.ToLower(filepath.Base(path))
	if strings.EqualFold(filepath.Base(dir), ".claude") && (name == "settings.json" || name == "settings.local.json") {
		return true
	}
	for _, home := range homes {
		if strings.EqualFold(dir, filepath.Join(home, ".claude")) && name == "remote-settings.json" {
			return true
		}
	}
	return managed(path)
}

// managed reports whether path is one of an administrator's settings files.
func managed(path string) bool {
	path = strings.ToLower(filepath.Clean(path))
	for _, root := range []string{"/etc/claude-code", "/library/application support/claudecode"} {
		rest, ok := strings.CutPrefix(path, root+"/")
		if ok && (rest == "managed-settings.json" || filepath.Dir(rest) == "managed-settings.d") {
			return true
		}
	}
	return false
}
