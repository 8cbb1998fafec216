// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// sqlLoss looks for statements that destroy data: a keyword at the start of a statement, comments and strings skipped. It
// returns the form ("drop", "truncate", "delete-all", "update-all") and the words that it saw, "" if there is none.
func sqlLoss(src string) (form, words string) {
	if len(src) > 256<<10 {
		src = src[:256<<10]
	}
	for _, st := range sqlStatements(src) {
		if f := sqlStatementLoss(st); f != "" {
			return f, joinWords(st[:min(len(st), 3)])
		}
	}
	return "", ""
}

func sqlStatementLoss(st []string) string {
	// WITH x AS (...) DELETE FROM t; EXPLAIN does not run, EXPLAIN ANALYZE does.
	i := 0
	switch st[0] {
	case "WITH":
		i = slices.IndexFunc(st, func(w string) bool { return w == "DELETE" || w == "UPDATE" })
	case "EXPLAIN":
		if i = slices.Index(st, "ANALYZE"); i >= 0 {
			i++
		}
	case "BEGIN", "DO":
		i = 1
	}
	if i < 0 || i >= len(st) {
		return ""
	}
	head, rest := st[i], st[i:]
	switch head {
	case "DROP":
		if len(rest) > 1 && (rest[1] == "TEMP" || rest[1] == "TEMPORARY") {
			return ""
		}
		return "drop"
	case "TRUNCATE":
		return "truncate"
	case "ALTER":
		if slices.Contains(rest, "DROP") && slices.Contains(rest, "TABLE") {
			return "drop"
		}
	case "DELETE":
		if !hasCondition(rest) {
			return "delete-all"
		}
	case "UPDATE":
		if slices.Contains(rest, "SET") && !hasCondition(rest) {
			return "update-all"
		}
	}
	return ""
}

// hasCondition reports whether a statement has a WHERE that can be false.
func hasCondition(st []string) bool {
	i := slices.Index(st, "WHERE")
	if i < 0 {
		return slices.Contains(st, "LIMIT")
	}
	cond := st[i+1:]
	if len(cond) == 1 {
		return cond[0] != "1" && cond[0] != "TRUE"
	}
	return !(len(cond) == 3 && cond[1] == "=" && cond[0] == cond[2])
}

// sqlStatements splits a text into statements of upper-case words. Strings, quoted names and comments become one word "?".
func sqlStatements(src string) [][]string {
	var out [][]string
	var cur []string
	flush := func() {
		if len(cur) > 0 && len(out) < 1<<18 {
			out = append(out, cur)
		}
		cur = nil
	}
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case c == ';':
			flush()
			i++
		case c == '\\' && len(cur) == 0 || c == '.' && len(cur) == 0: // psql and sqlite commands take their line
			i = lineEnd(src, i)
		case strings.HasPrefix(src[i:], "--"), c == '#' && len(cur) == 0:
			i = lineEnd(src, i)
		case strings.HasPrefix(src[i:], "/*!"): // MySQL runs these
			i += 3
			for i < len(src) && src[i] >= '0' && src[i] <= '9' {
				i++
			}
		case strings.HasPrefix(src[i:], "/*"):
			end := strings.Index(src[i+2:], "*/")
			if end < 0 {
				i = len(src)
			} else {
				i += end + 4
			}
		case strings.HasPrefix(src[i:], "*/"):
			i += 2
		case c == '\'' || c == '"' || c == '`':
			i = sqlQuoteEnd(src, i)
			cur = append(cur, "?")
		case c == '$' && dollarTag.MatchString(src[i:]):
			tag := dollarTag.FindString(src[i:])
			body := src[i+len(tag):]
			end := strings.Index(body, tag)
			if end < 0 {
				end = len(body)
			}
			cur = append(cur, "?")
			flush()
			out = append(out, sqlStatements(body[:end])...)
			i = min(i+end+2*len(tag), len(src))
		case isWordByte(c):
			j := i
			for j < len(src) && isWordByte(src[j]) {
				j++
			}
			cur = append(cur, strings.ToUpper(src[i:j]))
			i = j
		case c <= ' ' || c == '(' || c == ')':
			i++
		default:
			cur = append(cur, src[i:i+1])
			i++
		}
	}
	flush()
	return out
}

var dollarTag = regexp.MustCompile(`^\$[A-Za-z_]*\$`)

func lineEnd(s string, i int) int {
	if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(s)
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func sqlQuoteEnd(s string, i int) int {
	q := s[i]
	for i++; i < len(s); i++ {
		if s[i] == q {
			if i+1 < len(s) && s[i+1] == q {
				i++
				continue
			}
			return i + 1
		}
	}
	return len(s)
}

// progSQL covers the command-line clients of databases.
func progSQL(x *evaluation, c *command) {
	spec := optSpec{short: "cfdhpUvPoFRTL", long: []string{"--command", "--file", "--dbname", "--host", "--port", "--username", "--variable", "--set"}}
	texts := []shell.Word{}
	files := []shell.Word{}
	switch c.name {
	case "mysql", "mariadb":
		p := parseArgs(c.args, optSpec{short: "ehuPSD", long: []string{"--execute", "--host", "--user", "--port", "--socket", "--database"}})
		texts = p.all("-e", "--execute")
	case "sqlite3", "sqlite", "duckdb":
		p := parseSingleDash(c.args, "cmd", "init", "separator", "newline", "nullvalue", "c", "s", "f")
		if len(p.operands) > 1 {
			texts = append(texts, p.operands[1:]...)
		}
		texts = append(texts, p.all("-cmd", "-c", "-s")...)
		files = append(files, p.all("-init", "-f")...)
	default:
		p := parseArgs(c.args, spec)
		texts = p.all("-c", "--command")
		files = p.all("-f", "--file")
		for i, w := range c.args {
			switch name, val, eq := strings.Cut(w.Text, "="); name {
			case "-q", "--query", "-e", "--execute", "-execute", "-Q", "--statement", "--sql":
				if eq {
					texts = append(texts, subWord(w, val))
				} else if i+1 < len(c.args) {
					texts = append(texts, c.args[i+1])
				}
			}
		}
	}
	if c.Stdin.Known {
		texts = append(texts, c.Stdin)
	}
	for _, r := range c.Redirs {
		if r.Op == "<" {
			files = append(files, r.Target)
		}
	}
	for _, f := range files {
		if !f.Known || f.Text == "-" || c.Remote {
			continue
		}
		if abs := x.paths.Abs(c.Cwd.Text, f.Text); abs != "" {
			if b, err := x.view.ReadCode(abs, shell.MaxScript); err == nil {
				texts = append(texts, literal(string(b)))
			}
		}
	}
	seen := false
	for _, t := range texts {
		if !t.Known && strings.HasPrefix(strings.TrimSpace(t.Text), "\x00") {
			x.opaqueCode(c, "the statement is not known")
			continue
		}
		if form, words := sqlLoss(strings.ReplaceAll(t.Text, "\x00", " ? ")); form != "" {
			x.effect(c, DatabaseDestroy, form, words, "")
			seen = true
		}
		x.clientCommands(c, t.Text)
	}
	if !seen {
		x.execute(c)
	}
}

var copyProgram = regexp.MustCompile(`(?i)\b(?:TO|FROM)\s+PROGRAM\s+'((?:[^']|'')*)'`)

// clientCommands judges what the clients do by themselves: lines that start a shell, and lines that send output to a file or
// a program.
func (x *evaluation) clientCommands(c *command, text string) {
	for _, m := range copyProgram.FindAllStringSubmatch(text, 20) {
		x.nested(strings.ReplaceAll(m[1], "''", "'"), c, c.name)
	}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		for _, p := range []string{`\!`, ".shell ", ".system ", "system ", "!sh ", "!"} {
			if cmd, ok := strings.CutPrefix(line, p); ok {
				x.nested(strings.TrimSuffix(strings.TrimSpace(cmd), ";"), c, c.name)
				break
			}
		}
		for _, p := range []string{`\o `, `\out `, `\g `, ".output ", ".once ", ".save ", ".backup ", "tee ", `\T `, "spool "} {
			if f, ok := strings.CutPrefix(line, p); ok {
				f = strings.Trim(strings.TrimSpace(f), `'"`)
				if cmd, pipe := strings.CutPrefix(f, "|"); pipe {
					x.nested(cmd, c, c.name)
				} else if f != "" && f != "stdout" && !strings.HasPrefix(f, "-") {
					x.writeFile(c, literal(f), Write, false)
				}
				break
			}
		}
	}
}

// parseSingleDash reads options of the form -name VALUE.
func parseSingleDash(args []shell.Word, withValue ...string) parsedArgs {
	p := parsedArgs{values: map[string][]shell.Word{}}
	for i := 0; i < len(args); i++ {
		t := args[i].Text
		if len(t) < 2 || t[0] != '-' {
			p.operands = append(p.operands, args[i])
			continue
		}
		name := strings.TrimLeft(t, "-")
		p.flags = append(p.flags, "-"+name)
		if slices.Contains(withValue, name) && i+1 < len(args) {
			i++
			p.values["-"+name] = append(p.values["-"+name], args[i])
		}
	}
	p.after = len(p.operands)
	return p
}

func progDropDB(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "hpUe", long: []string{"--host", "--port", "--username"}})
	if !p.has("--help", "--version", "-V") {
		x.effect(c, DatabaseDestroy, "drop", p.operand(0), "")
	}
}

func progRedis(x *evaluation, c *command) {
	for _, w := range c.args {
		if t := strings.ToUpper(w.Text); t == "FLUSHALL" || t == "FLUSHDB" {
			x.effect(c, DatabaseDestroy, "flush", t, "")
			return
		} else if (t == "DEL" || t == "UNLINK") && c.ArgsFromStdin {
			x.effect(c, DatabaseDestroy, "flush", t, "every key that is listed is deleted")
			return
		}
	}
	x.execute(c)
}

// progFramework covers the database tasks of web frameworks and of mysqladmin.
func progFramework(x *evaluation, c *command) {
	if c.name == "pg_restore" && hasWord(c, "-c", "--clean") {
		x.effect(c, DatabaseDestroy, "drop", "pg_restore", "")
		return
	}
	for _, w := range c.args {
		switch t := w.Text; t {
		case "db:drop", "db:reset", "db:drop:all", "migrate:fresh", "migrate:reset", "db:wipe", "db:schema:load", "ecto.drop", "ecto.reset":
			x.effect(c, DatabaseDestroy, "drop", t, "")
			return
		case "drop":
			if c.name == "mysqladmin" {
				x.effect(c, DatabaseDestroy, "drop", lastText(c.args), "")
				return
			}
		}
	}
	x.execute(c)
}

var mongoLoss = regexp.MustCompile(`\.(dropDatabase|drop|remove|deleteMany)\s*\(\s*(\{\s*\})?\s*\)`)

func progMongo(x *evaluation, c *command) {
	text := c.Stdin.Text
	for _, w := range c.args {
		text += "\n" + w.Text
	}
	if mongoLoss.MatchString(text) {
		x.effect(c, DatabaseDestroy, "drop", "", "")
		return
	}
	x.execute(c)
}
