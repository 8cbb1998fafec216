// SPDX-License-Identifier: Apache-2.0

// Package docs_test holds the documents to the code: what they name exists, what exists is named, and their examples load.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/exporters/prom"
	"github.com/tripline-sh/tripline/tripwires"
)

const root = "../.."

// documents are the texts for people, by path from the root of the project.
var documents = []string{
	"README.md", "contrib/docs/architecture.md", "contrib/docs/rules.md", "contrib/docs/recipes.md", "contrib/docs/log.md", "contrib/docs/hooks.md",
	"contrib/docs/operations.md", "contrib/docs/threat-model.md",
}

// wiring are texts that wire something into other programs: their YAML is not ours.
var wiring = []string{"contrib/ci/README.md", "contrib/prometheus/README.md", "contrib/grafana/README.md", "hooks/scripts/claude/README.md"}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestEveryBuiltInRuleIsListedWithItsVerdict(t *testing.T) {
	t.Parallel()
	set, err := tripwires.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+\\.[a-z-]+)` \\| (?:floor|deny|ask)[^|]* \\| .+ \\|$").FindAllStringSubmatch(read(t, "contrib/docs/rules.md"), -1) {
		listed = append(listed, m[1])
	}
	slices.Sort(listed)
	for _, id := range set.RuleIDs() {
		if !slices.Contains(listed, id) {
			t.Errorf("%s is not listed in rules.md", id)
		}
	}
	for _, id := range listed {
		if !slices.Contains(set.RuleIDs(), id) {
			t.Errorf("rules.md lists %s, which is no built-in rule", id)
		}
	}
	if len(listed) != len(set.RuleIDs()) {
		t.Errorf("%d lines for %d rules", len(listed), len(set.RuleIDs()))
	}
}

func TestVerdictsInTheListAreThoseOfTheRules(t *testing.T) {
	t.Parallel()
	doc := read(t, "contrib/docs/rules.md")
	packs, err := filepath.Glob(filepath.Join(root, "tripwires/builtin/*.yaml"))
	if err != nil || len(packs) == 0 {
		t.Fatalf("no packs: %v", err)
	}
	verdict := regexp.MustCompile(`(?m)^    (deny|ask|allow):`)
	profiles := regexp.MustCompile(`(?m)^    profiles: \{(.*)\}$`)
	for _, pack := range packs {
		b, err := os.ReadFile(pack)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range strings.Split(string(b), "\n  - id: ")[1:] {
			id, body, _ := strings.Cut(rule, "\n")
			want := verdict.FindStringSubmatch(body)[1]
			if strings.Contains(body, "    floor: true\n") {
				want = "floor"
			}
			if m := profiles.FindStringSubmatch(body); m != nil {
				want += " (" + m[1] + ")"
			}
			if !strings.Contains(doc, "\n| `"+id+"` | "+want+" |") {
				t.Errorf("rules.md does not say that %s is %s", id, want)
			}
		}
	}
}

func TestEveryEffectKindAndMatcherKeyIsNamed(t *testing.T) {
	t.Parallel()
	doc := read(t, "contrib/docs/rules.md")
	kinds := regexp.MustCompile(`EffectKind = "([a-z-]+)"`).FindAllStringSubmatch(read(t, "tripwires/tripwires.go"), -1)
	flags := regexp.MustCompile(`(?m)^\tcase "([a-z]+)":\n\t\treturn f\.`).FindAllStringSubmatch(read(t, "tripwires/pattern.go"), -1)
	places := regexp.MustCompile(`Place = "([a-z-]+)"`).FindAllStringSubmatch(read(t, "tripwires/paths/paths.go"), -1)
	if len(kinds) < 20 || len(flags) < 8 || len(places) < 5 {
		t.Fatalf("found %d kinds, %d flags and %d places in the source", len(kinds), len(flags), len(places))
	}
	for _, m := range slices.Concat(kinds, flags, places) {
		if !strings.Contains(doc, "`"+m[1]+"`") {
			t.Errorf("rules.md does not name %s", m[1])
		}
	}
}

func TestYAMLExamplesLoadAndPassTheirOwnCases(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	rules, configs := 0, 0
	for _, path := range documents {
		for _, m := range block.FindAllStringSubmatch(read(t, path), -1) {
			if !strings.Contains(m[1], "version:") {
				configs++
				if _, err := config.Parse([]byte(m[1])); err != nil {
					t.Errorf("%s: %v", path, err)
				}
				continue
			}
			rules++
			set, err := tripwires.Load([]tripwires.File{{Path: path, Layer: tripwires.LayerUser, Data: []byte(m[1])}})
			if err != nil {
				t.Error(err)
				continue
			}
			for _, f := range set.Test() {
				t.Errorf("%s: %s", path, f)
			}
		}
	}
	if rules < 2 || configs < 1 {
		t.Errorf("%d examples of rules and %d of a configuration", rules, configs)
	}
}

func TestTheConfigurationExampleHoldsEveryKeyWithItsDefault(t *testing.T) {
	t.Parallel()
	doc := read(t, "contrib/docs/architecture.md")
	_, example, ok := strings.Cut(doc, "```yaml\n")
	if !ok {
		t.Fatal("no example")
	}
	example, _, _ = strings.Cut(example, "```")
	c, err := config.Parse([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if c != config.Default() {
		t.Errorf("the example is %+v, the defaults are %+v", c, config.Default())
	}
	for _, key := range config.Keys() {
		if _, name, dotted := strings.Cut(key, "."); dotted {
			key = name
		}
		if !strings.Contains(example, key+": ") {
			t.Errorf("the example has no %s", key)
		}
	}
}

func TestMetricsInDocumentsExistAndAllAreDescribed(t *testing.T) {
	t.Parallel()
	names, err := prom.New("test").Names()
	if err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile(`\btripline_[a-z_]+[a-z]`)
	for _, path := range documents {
		for _, name := range metric.FindAllString(read(t, path), -1) {
			if !slices.Contains(names, name) {
				t.Errorf("%s names %s, which does not exist", path, name)
			}
		}
	}
	hooks := read(t, "contrib/docs/hooks.md")
	for _, name := range names {
		if !strings.Contains(hooks, "`"+name+"`") {
			t.Errorf("hooks.md does not describe %s", name)
		}
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)
	for _, path := range slices.Concat(documents, wiring) {
		for _, m := range link.FindAllStringSubmatch(read(t, path), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			}
		}
	}
}

func TestTestsThatShowAPromiseExist(t *testing.T) {
	t.Parallel()
	there := map[string]bool{}
	decl := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	goFiles(t, func(path string, src []byte) {
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range decl.FindAllSubmatch(src, -1) {
				there[string(m[1])] = true
			}
		}
	})
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(read(t, "contrib/docs/architecture.md"), -1)
	if len(named) < 11 {
		t.Fatalf("architecture.md names %d tests", len(named))
	}
	for _, m := range named {
		if !there[m[1]] {
			t.Errorf("architecture.md names %s, which does not exist", m[1])
		}
	}
}

// goFiles calls fn for every Go file of the project.
func goFiles(t *testing.T, fn func(path string, src []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."), d.IsDir() && d.Name() == "node_modules":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fn(filepath.ToSlash(path), src)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
