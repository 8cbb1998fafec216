// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/xml"
	"path/filepath"
	"strings"
)

// gatherUnits reads what a service manager of this user would start.
func (f *Facts) gatherUnits() {
	conf := f.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(conf) {
		if f.Places.Home == "" {
			return
		}
		conf = filepath.Join(f.Places.Home, ".config")
	}
	user := filepath.Join(conf, "systemd", "user")
	agents := filepath.Join(f.Places.Home, "Library", "LaunchAgents")
	for _, u := range []struct {
		path    string
		program func([]byte) string
		listens string // on what the unit should listen, if it is one of a socket
	}{
		{filepath.Join(user, "tripline.service"), systemdProgram, ""},
		{filepath.Join(user, "tripline-hook.socket"), nil, f.Places.HookSocket},
		{filepath.Join(user, "tripline-control.socket"), nil, f.Places.ControlSocket},
		{filepath.Join(agents, "sh.tripline.triplined.plist"), launchdProgram, ""},
	} {
		b, err := readRegular(u.path, maxSmall)
		if err != nil {
			continue
		}
		unit := Unit{Path: u.path, Wants: u.listens}
		if u.program != nil {
			unit.Program = u.program(b)
			unit.Exists = executable(unit.Program)
		} else {
			unit.Listens = unescape.Replace(unitKey(b, "ListenStream"))
		}
		f.Units = append(f.Units, unit)
	}
}

// unescape undoes what a unit file needs before a percent sign, a quote or a backslash.
var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, "%%", "%")

// unitKey is the last value of a key, "" if there is none.
func unitKey(unit []byte, key string) (value string) {
	for line := range strings.Lines(string(unit)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), key+"="); ok {
			value = strings.TrimSpace(v)
		}
	}
	return value
}

// systemdProgram is the program of a unit's last ExecStart.
func systemdProgram(unit []byte) string {
	v := strings.TrimLeft(unitKey(unit, "ExecStart"), "@-:+!|")
	quoted, ok := strings.CutPrefix(v, `"`)
	if !ok {
		v, _, _ = strings.Cut(v, " ")
		return unescape.Replace(v)
	}
	for i := 0; i < len(quoted); i++ {
		switch quoted[i] {
		case '\\':
			i++
		case '"':
			return unescape.Replace(quoted[:i])
		}
	}
	return ""
}

// launchdProgram is the first string of ProgramArguments.
func launchdProgram(plist []byte) string {
	d := xml.NewDecoder(strings.NewReader(string(plist)))
	key, element, inside := "", "", false
	for {
		tok, err := d.Token()
		if err != nil {
			return ""
		}
		switch t := tok.(type) {
		case xml.StartElement:
			element = t.Name.Local
			inside = inside || element == "array" && key == "ProgramArguments"
		case xml.EndElement:
			element = ""
		case xml.CharData:
			if element == "key" {
				key = strings.TrimSpace(string(t))
			}
			if element == "string" && inside {
				return string(t)
			}
		}
	}
}
