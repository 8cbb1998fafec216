// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
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

	// the same two, as the documents name them
	MetricsListen *string `yaml:"metrics.listen"`
	LogRetention  *string `yaml:"log.retention"`
}

// Error says what is wrong in a configuration file, and where.
type Error struct {
	File string // "" if the text did not come from a file
	Line int    // from 1; 0 = the file as a whole
	Msg  string // may quote the file
}

func (e *Error) Error() string {
	switch {
	case e.Line > 0 && e.File != "":
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	case e.Line > 0:
		return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
	case e.File != "":
		return e.File + ": " + e.Msg
	}
	return e.Msg
}

// Load reads the configuration file at path. An absent file is the default configuration. An error about its
// content is an *Error.
func Load(path string) (Config, error) {
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Default(), nil
	}
	if err != nil {
		return Config{}, err
	}
	c, err := Parse(data)
	var e *Error
	if errors.As(err, &e) {
		e.File = path
	}
	return c, err
}

// Parse reads a configuration from YAML. Unknown and repeated keys are errors. All errors are of
// type *Error.
func Parse(data []byte) (Config, error) {
	if line, msg := checkShape(data); msg != "" {
		return Config{}, &Error{Line: line, Msg: msg}
	}
	var f file
	if err := yaml.UnmarshalWithOptions(data, &f, yaml.Strict()); err != nil && !errors.Is(err, io.EOF) {
		e := &Error{Msg: strings.TrimSpace(yaml.FormatError(err, false, true))}
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
			e.Line, e.Msg = at.GetToken().Position.Line, at.GetMessage() // one line, without the library's own position and quote
		}
		return Config{}, e
	}
	c := Default()
	listen, retention := f.MetricsListen, f.LogRetention
	if f.Metrics != nil {
		if listen != nil && f.Metrics.Listen != nil {
			return Config{}, &Error{Line: lineOf(data, "metrics.listen"), Msg: "metrics.listen is given twice"}
		}
		listen = cmp.Or(listen, f.Metrics.Listen)
	}
	if f.Log != nil {
		if retention != nil && f.Log.Retention != nil {
			return Config{}, &Error{Line: lineOf(data, "log.retention"), Msg: "log.retention is given twice"}
		}
		retention = cmp.Or(retention, f.Log.Retention)
	}
	values := []struct {
		key   string
		value *string
	}{
		{"mode", f.Mode}, {"profile", f.Profile}, {"on_down", f.OnDown}, {"gate", f.Gate},
		{"hold", f.Hold}, {"unmapped", f.Unmapped}, {"metrics.listen", listen}, {"log.retention", retention},
	}
	for _, v := range values {
		if v.value == nil {
			continue
		}
		if err := c.Set(v.key, *v.value); err != nil {
			return Config{}, &Error{Line: lineOf(data, v.key), Msg: err.Error()}
		}
	}
	return c, nil
}

// lineOf is the line on which the last part of a key stands that can be found; 0 if there is none. The file was parsed
// before, so a key is where it looks like one.
func lineOf(data []byte, key string) (at int) {
	parts := strings.Split(key, ".")
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		if len(parts) == 0 {
			break
		}
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, key+":"):
			return n
		case strings.HasPrefix(line, parts[0]+":"):
			at, parts = n, parts[1:]
		}
	}
	return at
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
		return nil, &Error{File: path, Msg: "not a regular file"}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(data) > maxFile {
		return nil, &Error{File: path, Msg: fmt.Sprintf("larger than %d bytes", maxFile)}
	}
	return data, nil
}

// checkShape bounds size and nesting without parsing; msg is "" if they are fine. It does not know quoting, so it may refuse a file that only quotes
// many brackets; no sensible configuration does.
func checkShape(data []byte) (badLine int, msg string) {
	if len(data) > maxFile {
		return 0, fmt.Sprintf("larger than %d bytes", maxFile)
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
			return line, fmt.Sprintf("nested deeper than %d levels", maxDepth)
		}
	}
	return 0, ""
}
