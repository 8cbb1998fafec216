// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// pattern is one entry of a rule's deny, ask, allow or except list. Exactly one of its parts is set.
type pattern struct {
	text string // as written

	words  []string // Bash(...): argv words
	prefix bool     // Bash(...:*): words are a prefix
	path   string   // Read(...), Write(...), Edit(...)
	reads  bool     // path: Read
	domain string   // WebFetch(domain:...)
	tool   string   // a bare tool name; "*" at its end is a wildcard
	source string   // mcp__...@source: where the server is configured
	effect *matcher
}

// matcher selects effects. Empty lists and nil flags do not limit.
type matcher struct {
	kinds    []EffectKind
	places   []string
	programs []string
	forms    []string
	target   string // doublestar pattern over the absolute target
	flags    []flagTest
}

type flagTest struct {
	name string
	want bool
}

// matcherFlags are the yes/no keys of an effect matcher.
func matcherFlag(f *finding, name string) (value, ok bool) {
	switch name {
	case "recursive":
		return f.Recursive, true
	case "forced":
		return f.Forced, true
	case "regenerable":
		return f.regenerable, true
	case "recoverable":
		return f.recoverable, true
	case "exists":
		return f.exists, true
	case "shallow":
		return f.shallow, true
	case "credentials":
		return f.credentials, true
	case "certain":
		return f.Certainty == Certain, true
	case "linked":
		return f.linked, true
	case "privileged":
		return f.privileged, true
	}
	return false, false
}

func (m *matcher) matches(f *finding) bool {
	if f.quiet && !slices.Contains(m.kinds, f.Kind) {
		return false
	}
	if len(m.kinds) > 0 && !slices.Contains(m.kinds, f.Kind) {
		return false
	}
	if len(m.places) > 0 && !slices.Contains(m.places, f.Place) {
		return false
	}
	if len(m.programs) > 0 && !slices.Contains(m.programs, f.Program) {
		return false
	}
	if len(m.forms) > 0 && !slices.Contains(m.forms, f.form) {
		return false
	}
	for _, t := range m.flags {
		if got, _ := matcherFlag(f, t.name); got != t.want {
			return false
		}
	}
	if m.target == "" {
		return true
	}
	for _, p := range append([]string{f.Target}, f.abs...) {
		if p != "" && globMatch(m.target, p) {
			return true
		}
	}
	return false
}

// globMatch is doublestar with the directory itself included in "dir/**".
func globMatch(pat, s string) bool {
	if ok, err := doublestar.Match(pat, s); err == nil && ok {
		return true
	}
	return strings.HasSuffix(pat, "/**") && strings.TrimSuffix(pat, "/**") == s
}

// onFinding reports whether the pattern speaks of this effect.
func (p *pattern) onFinding(x *evaluation, f *finding) bool {
	switch {
	case p.effect != nil:
		return p.effect.matches(f)
	case p.path != "":
		if p.reads != f.Kind.reads() || !p.reads && !f.Kind.writes() {
			return false
		}
		for _, pat := range x.pathPatterns(p.path) {
			for _, s := range f.abs {
				if globMatch(pat, s) {
					return true
				}
			}
		}
	case p.domain != "":
		return f.host != "" && hostWithin(f.host, p.domain)
	}
	return false
}

// onCommand reports whether a Bash pattern matches a command. For allow the program must be written as in the pattern.
func (p *pattern) onCommand(c *command, exact bool) bool {
	if len(p.words) == 0 || len(c.Argv) == 0 {
		return false
	}
	if p.argv(c.texts, exact) {
		return true
	}
	return !exact && c.bare != nil && p.argv(c.bare, exact)
}

func (p *pattern) argv(argv []string, exact bool) bool {
	if len(argv) < len(p.words) || !p.prefix && len(argv) != len(p.words) {
		return false
	}
	for i, w := range p.words {
		a := argv[i]
		if i == 0 && !exact && !strings.Contains(w, "/") {
			a = baseName(a)
		}
		if a != w {
			return false
		}
	}
	return true
}

// onTool reports whether a bare tool pattern matches the call. For allow, an MCP tool's server must come from a source that
// a project cannot write, unless the pattern names the source.
func (p *pattern) onTool(c *Call, allow bool) bool {
	if p.tool == "" {
		return false
	}
	if strings.HasSuffix(p.tool, "*") {
		if !strings.HasPrefix(c.Tool, strings.TrimSuffix(p.tool, "*")) {
			return false
		}
	} else if c.Tool != p.tool && (!strings.HasPrefix(p.tool, "mcp__") || !strings.HasPrefix(c.Tool, p.tool+"__")) {
		return false
	}
	if p.source != "" {
		return c.MCPSource == p.source
	}
	if allow && strings.HasPrefix(c.Tool, "mcp") {
		return c.MCPSource == "user" || c.MCPSource == "managed" || c.MCPSource == "enterprise"
	}
	return true
}

// parsePattern reads one pattern; the message of an error says what is wrong with it.
func parsePattern(s string) (pattern, string) {
	p := pattern{text: s}
	if s != strings.TrimSpace(s) || s == "" {
		return p, "a pattern must not be blank, nor start or end with a space"
	}
	name, arg, hasArg := strings.Cut(s, "(")
	if !hasArg {
		p.tool = s
		if strings.HasPrefix(s, "mcp") {
			p.tool, p.source, _ = strings.Cut(s, "@")
		}
		if strings.ContainsAny(p.tool, " \t/:)\"'") || strings.Contains(strings.TrimSuffix(p.tool, "*"), "*") {
			return p, "not a tool name; a command is written Bash(COMMAND:*)"
		}
		return p, ""
	}
	if !strings.HasSuffix(arg, ")") {
		return p, "no closing parenthesis"
	}
	arg = strings.TrimSuffix(arg, ")")
	if strings.TrimSpace(arg) == "" {
		return p, "nothing between the parentheses"
	}
	switch name {
	case "Bash":
		return parseBashPattern(p, arg)
	case "Read", "Write", "Edit":
		if strings.HasPrefix(arg, "../") || !doublestar.ValidatePattern(arg) {
			return p, "not a path pattern"
		}
		p.path, p.reads = arg, name == "Read"
	case "WebFetch":
		d, ok := strings.CutPrefix(arg, "domain:")
		if d = strings.ToLower(strings.TrimSpace(d)); !ok || d == "" || strings.ContainsAny(d, "/ ") {
			return p, "want WebFetch(domain:HOST)"
		}
		p.domain = strings.TrimPrefix(d, "*.")
	default:
		return p, "only Bash, Read, Write, Edit and WebFetch take an argument"
	}
	return p, ""
}

func parseBashPattern(p pattern, arg string) (pattern, string) {
	for _, suffix := range []string{":*", " *"} {
		if rest, ok := strings.CutSuffix(arg, suffix); ok {
			arg, p.prefix = rest, true
			break
		}
	}
	p.words = strings.Fields(arg)
	if len(p.words) == 0 {
		return p, "a pattern for every command is written Bash"
	}
	if strings.Contains(arg, "*") {
		return p, "* stands only at the end, as in Bash(git push:*)"
	}
	return p, ""
}

// hostWithin reports whether host is domain or a name below it.
func hostWithin(host, domain string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == domain || strings.HasSuffix(host, "."+domain)
}

// canonical renders what the pattern says, for the rule's hash.
func (p *pattern) canonical() json.RawMessage {
	if p.effect == nil {
		b, _ := json.Marshal(p.text) // a string always marshals
		return b
	}
	m := map[string]any{}
	for k, v := range map[string][]string{"place": p.effect.places, "program": p.effect.programs, "form": p.effect.forms} {
		if len(v) > 0 {
			m[k] = v
		}
	}
	if len(p.effect.kinds) > 0 {
		m["effect"] = p.effect.kinds
	}
	if p.effect.target != "" {
		m["target"] = p.effect.target
	}
	for _, f := range p.effect.flags {
		m[f.name] = f.want
	}
	b, _ := json.Marshal(m) // strings and booleans always marshal; keys come out sorted
	return b
}
