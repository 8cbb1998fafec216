// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/tripline-sh/tripline/hooks/agents/internal/rawjson"
)

// JudgeSettings says whether a change of a settings file is harmless: whether nothing differs but keys that can neither
// touch hooks nor run code nor blind anybody, and whether their new values are such that the client keeps the file (one bad
// value makes it drop the whole file, hooks included, without a word). why is for a person or a model and quotes no values.
//
// old and new are the bytes before and after; nil means that there is no file, which is never harmless. Who knows for sure
// that a file was absent or without settings passes an empty slice for old.
func JudgeSettings(path string, old, new []byte) (harmless bool, why string) {
	switch {
	case managed(path):
		return false, "an administrator's settings file"
	case old == nil:
		return false, "no earlier content to compare with"
	case new == nil:
		return false, "the file would be gone, and its hooks with it"
	case bytes.Equal(old, new):
		return true, "nothing changes"
	}
	if len(old) == 0 {
		old = []byte("{}")
	}
	before, oldStrict, err := members(old)
	if err != nil {
		return false, "the earlier content cannot be read: " + err.Error()
	}
	after, newStrict, err := members(new)
	if err != nil {
		return false, "the new content cannot be read: " + err.Error()
	}
	if oldStrict && !newStrict {
		return false, "comments or trailing commas come in, and the client may drop the whole file"
	}
	for _, key := range changed(before, after) {
		if key == "permissions" {
			if ok, why := judgePermissions(before[key], after[key]); !ok {
				return false, why
			}
			continue
		}
		if why := refuse(harmlessKeys[key], key, before[key], after[key]); why != "" {
			return false, why
		}
	}
	return true, "only harmless settings change"
}

// members reads a settings file as canonical JSON, key by key. A key that is there twice, at any depth, is an error. strict
// is false if the file needs a reader that tolerates comments or trailing commas.
func members(b []byte) (m map[string][]byte, strict bool, err error) {
	v, err := ParseSettings(bytes.Clone(b)) // standardising works in place
	if err != nil {
		return nil, false, err
	}
	strict = v.IsStandard()
	v.Standardize()
	canonical, err := rawjson.Canonical(v.Pack(), nil)
	if err != nil {
		return nil, false, err
	}
	m, err = objectMembers(canonical)
	return m, strict, err
}

func objectMembers(b []byte) (map[string][]byte, error) {
	m := make(map[string][]byte)
	err := rawjson.Object(b, func(key, value []byte) error {
		name, _ := rawjson.Text(key)
		m[name] = value
		return nil
	})
	return m, err
}

// changed returns the keys whose values differ, sorted. Values are canonical.
func changed(before, after map[string][]byte) []string {
	var keys []string
	for k, v := range after {
		if was, ok := before[k]; !ok || !bytes.Equal(was, v) {
			keys = append(keys, k)
		}
	}
	for k := range before {
		if _, ok := after[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func judgePermissions(before, after []byte) (bool, string) {
	var maps [2]map[string][]byte
	for i, v := range [][]byte{before, after} {
		if v == nil {
			continue
		}
		m, err := objectMembers(v)
		if err != nil {
			return false, "permissions is not an object, and the client would drop the whole file"
		}
		maps[i] = m
	}
	for _, key := range changed(maps[0], maps[1]) {
		if why := refuse(harmlessPermissions[key], "permissions."+key, maps[0][key], maps[1][key]); why != "" {
			return false, why
		}
	}
	return true, ""
}

// refuse says why a changed key is not harmless, "" if it is. valid is nil for a key that is not known to be.
func refuse(valid check, key string, before, after []byte) string {
	switch {
	case valid == nil:
		return fmt.Sprintf("the setting %s changes", shown(key))
	case after != nil && !valid(before, after):
		return fmt.Sprintf("the setting %s gets a value that is not known to be harmless", shown(key))
	case after == nil && !valid(before, nil):
		return fmt.Sprintf("the setting %s is removed", shown(key))
	}
	return ""
}

// shown makes a key that somebody else chose fit for a sentence.
func shown(key string) string { return strconv.QuoteToASCII(key[:min(len(key), 64)]) }

// check says whether a harmless key may get this value. after is nil if the key is removed, before if it was not there. A
// value of another type than the client expects is never harmless.
type check func(before, after []byte) bool

// Read-only after the program's start. Everything that is not listed changes hooks, runs code, opens a door, or is unknown:
// hooks, disableAllHooks, env, apiKeyHelper, statusLine, enabledPlugins, sandbox...
var harmlessKeys = map[string]check{
	"$schema":                    isText,
	"model":                      isText,
	"outputStyle":                isText,
	"language":                   isText,
	"theme":                      oneOf("dark", "light", "dark-daltonized", "light-daltonized", "dark-ansi", "light-ansi", "auto"),
	"editorMode":                 oneOf("normal", "vim"),
	"effortLevel":                oneOf("low", "medium", "high", "xhigh"),
	"includeCoAuthoredBy":        isBool,
	"alwaysThinkingEnabled":      isBool,
	"showThinkingSummaries":      isBool,
	"spinnerTipsEnabled":         isBool,
	"showTurnDuration":           isBool,
	"prefersReducedMotion":       isBool,
	"terminalProgressBarEnabled": isBool,
	"syntaxHighlightingDisabled": isBool,
	"respectGitignore":           isBool,
	"cleanupPeriodDays":          keepsLonger,
}

var harmlessPermissions = map[string]check{
	"allow":                 isTexts,
	"deny":                  isTexts,
	"ask":                   isTexts,
	"additionalDirectories": isTexts,
	"defaultMode":           oneOf("default", "plan"), // the others loosen
}

func isText(_, after []byte) bool { return after == nil || after[0] == '"' }

func isBool(_, after []byte) bool {
	return after == nil || string(after) == "true" || string(after) == "false"
}

func isTexts(_, after []byte) bool {
	if after == nil {
		return true
	}
	texts := true
	err := rawjson.Array(after, func(v []byte) error {
		texts = texts && v[0] == '"'
		return nil
	})
	return err == nil && texts
}

func oneOf(values ...string) check {
	return func(_, after []byte) bool {
		text, ok := rawjson.Text(after)
		return after == nil || ok && slices.Contains(values, text)
	}
}

// keepsLonger lets the client keep its transcripts for at least as long as before: what shortens it deletes evidence.
func keepsLonger(before, after []byte) bool {
	days := func(v []byte) (int, error) {
		if v == nil {
			return 30, nil // the client's default
		}
		return strconv.Atoi(string(v))
	}
	was, err1 := days(before)
	will, err2 := days(after)
	return err1 == nil && err2 == nil && will >= was && will <= 36500
}
