// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// progAgent judges the start of another coding agent: with its approvals off it is asked for, with our hooks off it is on the
// floor.
func progAgent(x *evaluation, c *command) {
	args := c.texts[1:]
	if cut := slices.Index(args, "--"); cut >= 0 {
		args = args[:cut]
	}
	if hooksOff(c, args) || x.otherHome(c) {
		x.effect(c, AgentUnguarded, "hooks-off", c.name, "an agent would run without these hooks")
		return
	}
	if approvalsOff(c.name, args) {
		x.effect(c, AgentUnguarded, "approvals-off", c.name, "an agent would run without asking anyone")
		return
	}
	if c.Privileged {
		x.effect(c, AgentUnguarded, "unknown-options", c.name, "it would run as another user, with that user's settings")
		return
	}
	for _, w := range c.args {
		if !w.Known && w.Split {
			x.effect(c, AgentUnguarded, "unknown-options", c.name, "its options could not be told")
			return
		}
	}
	x.execute(c)
}

// otherHome reports whether a command sets a HOME that is none of the known ones: an agent would find no settings of ours there.
func (x *evaluation) otherHome(c *command) bool {
	home := ""
	for _, a := range append(slices.Clone(c.Exported), c.Env...) {
		if a.Name == "HOME" {
			home = a.Value.Text
			if !a.Value.Known {
				return true
			}
		}
	}
	return home != "" && !slices.Contains(x.homes, strings.TrimSuffix(home, "/"))
}

// hooksOff reports whether an agent's options or environment switch hooks off, or give it other settings than those that
// carry ours.
func hooksOff(c *command, args []string) bool {
	for _, a := range append(slices.Clone(c.Env), c.Exported...) {
		switch a.Name {
		case "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE":
			if !a.Value.Known || a.Value.Text != "" && a.Value.Text != "0" && a.Value.Text != "false" {
				return true
			}
		case "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "GEMINI_CLI_SYSTEM_SETTINGS_PATH", "COPILOT_HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR":
			return true
		}
	}
	for i, a := range args {
		name, val, eq := strings.Cut(a, "=")
		if !eq && i+1 < len(args) {
			val = args[i+1]
		}
		switch name {
		case "--bare", "--safe-mode", "--restricted", "--no-hooks", "--disable-hooks", "--pure":
			return true
		case "--setting-sources":
			if !slices.Contains(strings.Split(val, ","), "user") {
				return true
			}
		case "--settings":
			if c.name == "claude" && !harmlessSettings(val) {
				return true
			}
		case "--disable", "-c", "--config":
			if c.name == "codex" && strings.Contains(val, "hooks") {
				return true
			}
		}
	}
	return false
}

// harmlessSettings reports whether inline settings name none of the keys that switch hooks. A file is not read: it may change
// until it is.
func harmlessSettings(val string) bool {
	in, ok := decodeInput([]byte(val))
	if !ok {
		return false
	}
	for k := range in {
		switch k {
		case "model", "theme", "outputStyle", "language", "verbose":
		default:
			return false
		}
	}
	return true
}

// approvalsOff reports whether an agent would act without asking.
func approvalsOff(name string, args []string) bool {
	for i, a := range args {
		flag, val, eq := strings.Cut(a, "=")
		if !eq && i+1 < len(args) {
			val = args[i+1]
		}
		switch flag {
		case "--dangerously-skip-permissions", "--allow-dangerously-skip-permissions", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", "--yolo",
			"--full-auto", "--allow-all-tools", "--allow-all-paths", "--allow-all", "--trust-all-tools", "--dangerously-allow-all", "--yes-always", "--force", "--skip-permissions", "--auto-approve":
			return flag != "--force" || name == "cursor-agent"
		case "--permission-mode", "--approval-mode":
			if v := strings.ToLower(val); v == "bypasspermissions" || v == "yolo" || v == "dontask" {
				return true
			}
		case "--ask-for-approval", "-a":
			if name == "codex" && val == "never" {
				return true
			}
		case "--sandbox", "-s":
			if name == "codex" && val == "danger-full-access" {
				return true
			}
		case "-y":
			if name == "gemini" || name == "qwen" {
				return true
			}
		case "-f":
			if name == "cursor-agent" {
				return true
			}
		}
	}
	return false
}

// progRunner covers npx and its kin: the program they fetch may be an agent, and otherwise project code.
func progRunner(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "pc", long: []string{"--package", "--call"}, posix: true})
	for _, w := range p.all("-c", "--call") {
		x.nested(w.Text, c, c.name)
	}
	ops := p.operands
	if c.name == "npm" && p.operand(0) == "unpublish" && !hasWord(c, "--dry-run") {
		x.effect(c, InfraDestroy, "destroy", "unpublish", "a published package is withdrawn")
		return
	}
	x.packageScripts(c, &p)
	if c.name == "pnpm" && p.has("--shell-mode") || c.name == "pnpm" && len(p.all("-c")) > 0 && p.all("-c")[0].Text == "exec" {
		// pnpm -c exec 'text': the option takes no value there
		if len(ops) > 0 {
			x.nested(joinWords(wordTexts(ops)), c, c.name)
		}
	}
	if len(ops) > 0 && (c.name == "pnpm" || c.name == "yarn" || c.name == "npm" || c.name == "bun" || c.name == "uv") {
		switch ops[0].Text {
		case "dlx", "exec", "x":
			ops = ops[1:]
		case "run":
			if c.name == "uv" {
				ops = ops[1:]
				break
			}
			x.execute(c)
			return
		default:
			x.execute(c)
			return
		}
		q := parseArgs(ops, optSpec{posix: true, short: "pc", long: []string{"--package", "--with", "--python", "--call"}})
		if c.name != "uv" {
			for _, w := range q.all("-c", "--call") {
				x.nestedWord(w, c, c.name)
			}
		}
		ops = q.operands
	}
	if len(ops) == 0 {
		x.execute(c)
		return
	}
	argv := wordTexts(ops)
	if name := packageProgram(argv[0]); name != "" && knownWords(ops) {
		argv[0] = name
		x.nestedArgv(argv, c, c.name)
		return
	}
	x.execute(c)
}

// packageScripts judges the text of a script that npm pkg set puts into the package, which a later npm run would start.
func (x *evaluation) packageScripts(c *command, p *parsedArgs) {
	if p.operand(0) != "pkg" && p.operand(0) != "set-script" {
		return
	}
	for _, w := range p.operands {
		if name, val, ok := strings.Cut(w.Text, "="); ok && strings.HasPrefix(name, "scripts.") {
			x.onlyIfDenied(func() { x.nested(val, c, "npm script") })
		}
	}
}

func knownWords(ws []shell.Word) bool {
	return !slices.ContainsFunc(ws, func(w shell.Word) bool { return !w.Known })
}

// packageProgram names the program that a package runner starts, for the packages that a table knows.
func packageProgram(pkg string) string {
	if i := strings.LastIndexByte(pkg, '@'); i > 0 {
		pkg = pkg[:i]
	}
	switch pkg {
	case "@anthropic-ai/claude-code":
		return "claude"
	case "@openai/codex":
		return "codex"
	case "@google/gemini-cli":
		return "gemini"
	case "rimraf", "del-cli", "trash-cli", "python", "python3", "node", "bash", "sh", "supabase", "firebase", "wrangler", "serverless", "cdk", "prisma", "sequelize", "sequelize-cli", "typeorm", "typeorm-ts-node-commonjs", "knex", "drizzle-kit", "shx",
		"concurrently", "nodemon", "cross-env", "cross-env-shell", "env-cmd", "onchange", "start-server-and-test":
		return pkg
	}
	return ""
}

func progRimraf(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{})
	for _, w := range p.operands {
		x.remove(c, w, removal{recursive: true, forced: true, form: c.name})
	}
	x.removeRest(c, removal{recursive: true, forced: true, form: c.name})
}

func progPrisma(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{})
	if p.operand(0) == "migrate" && p.operand(1) == "reset" || p.has("--force-reset", "--accept-data-loss") {
		x.effect(c, DatabaseDestroy, "drop", "prisma "+p.operand(0), "")
		return
	}
	x.execute(c)
}
