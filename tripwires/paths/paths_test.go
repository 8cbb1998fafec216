// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"path"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/tripwires/view"
)

const (
	home = "/home/dev"
	shop = "/home/dev/shop"
)

// machine is a small file system with a home and a project in it.
func machine() *view.Memory {
	m := view.NewMemory()
	for _, dir := range []string{"/etc", "/usr/bin", "/tmp", "/var/tmp", "/dev", shop + "/.git", shop + "/src", home + "/.config",
		home + "/.local/bin", home + "/notes", "/srv/data"} {
		m.AddDir(dir)
	}
	m.AddFile(shop+"/main.go", []byte("package main"))
	m.AddFile(home+"/.claude/settings.json", []byte("{}"))
	m.AddFile(home+"/.ssh/id_work", []byte("key"))
	m.AddFile(home+"/.local/bin/triplined", []byte("elf"))
	return m
}

func classifier(m *view.Memory) *Classifier {
	return New(Options{Homes: []string{home}, Cwd: shop, Reader: m})
}

func TestPlacesAreTheFirstThatMatches(t *testing.T) {
	t.Parallel()
	tests := map[Place][]string{
		Tripline: {
			home + "/.config/tripline", home + "/.config/tripline/rules.d/a.yaml", home + "/.local/state/tripline/log/x.db",
			home + "/.local/bin/auditctl", home + "/.local/bin/tripline", home + "/.local/bin/triplined",
			home + "/.local/bin/tripline-hook", home + "/.config/systemd/user/triplined.service",
			home + "/.config/systemd/user/default.target.wants/triplined.service",
			home + "/.config/systemd/user/tripline-hook.socket", home + "/.config/systemd/user.control/tripline.service.d/10.conf",
			home + "/.local/share/systemd/user/tripline.service", "/run/user/1000/systemd/transient/tripline.service",
			"/run/systemd/system/tripline.service.d/10.conf", "/usr/local/lib/systemd/user/tripline.service", "/usr/local/lib/tripline/claude/tripline.sh",
			home + "/.config/systemd/user/triplined.service.d/override.conf",
			home + "/Library/LaunchAgents/sh.tripline.triplined.plist",
			"/etc/tripline", "/etc/tripline/tripline.yaml", "/var/lib/tripline/log", "/run/tripline/hook.sock",
			"/run/user/1000/tripline", "/run/user/1000/tripline/hook.sock", "/usr/bin/tripline", "/usr/bin/triplined",
			"/usr/bin/tripline-hook", "/usr/lib/tripline/bin/auditctl", "/etc/systemd/system/triplined.service",
			home + "/.claude/settings.json", home + "/.claude/settings.local.json", home + "/.claude.json",
			shop + "/.claude/settings.json", shop + "/.claude/settings.local.json", shop + "/sub/.claude/settings.json",
			"/srv/other/.claude/settings.json", "/tmp/x/.codex/hooks.json", home + "/.codex/config.toml",
			shop + "/.gemini/settings.json", home + "/.qwen/settings.json", shop + "/.cursor/hooks.json",
			home + "/.copilot/hooks/a.json", home + "/.copilot/settings.json", shop + "/.github/hooks/pre.json",
			shop + "/.github/copilot/settings.json", shop + "/opencode.json", shop + "/.opencode/plugins/a.ts",
			home + "/.config/opencode/plugin/a.js", home + "/.config/opencode/opencode.jsonc", shop + "/.factory/hooks.json",
			shop + "/.factory/settings.json", home + "/.kiro/agents/a.json", shop + "/.kiro/hooks/a.json",
			shop + "/.agents/plugins/p/hooks/hooks.json", home + "/.codeium/windsurf/hooks.json", shop + "/.windsurf/hooks.json",
			shop + "/.clinerules/hooks/PreToolUse", shop + "/.amp/plugins/a.ts", home + "/.claude/plugins/cache/p/hooks/hooks.json",
			"/etc/claude-code/managed-settings.json", "/etc/claude-code/managed-settings.d/10.json", "/etc/cursor/hooks.json",
			"/etc/github-copilot/policy.d/a.json", "/etc/gemini-cli/settings.json",
		},
		Device:   {"/dev/sda", "/dev/mem", "/dev/disk/by-id/x", "/dev/fd/x", "/dev/tcp/host/80", "/dev/shm/x"},
		HomeRoot: {home, "/home", "/", home + "/.config", home + "/.local", home + "/Library", home + "/.ssh", home + "/.ssh/authorized_keys", home + "/.gnupg/x/y", home + "/.aws/credentials", home + "/.kube/config", home + "/.docker/config.json", home + "/.config/gcloud", home + "/.config/gcloud/a.json"},
		ProjectRoot: {
			shop, shop + "/.git", shop + "/.git/config", shop + "/.git/hooks/pre-commit",
		},
		Project: {
			shop + "/src", shop + "/src/a/b", shop + "/.github/workflows/ci.yml", shop + "/.gitignore", shop + "/.claude/commands/a.md",
			shop + "/.env", shop + "/settings.json", shop + "/tripline", shop + "/cmd/triplined/main.go", shop + "/.config/tripline/x",
			shop + "/.local/bin/tripline", shop + "/sub/.git/config", shop + "/.cursor/rules/a.mdc",
		},
		Temp:   {"/tmp/x", "/tmp/tripline-mktemp.1/out", "/var/tmp/x", "/tmp/home/dev"},
		System: {"/etc", "/etc/hosts", "/usr", "/usr/local/go", "/var/www", "/var/tmp", "/opt", "/lib64/x", "/proc/1", "/srv/data/x", "/run/x", "/root", "/root/.bashrc", "/data", "/work", "/run/user/1000/bus", "/usr/bin/ls", "/usr/sbin/auditctl", "/dev"},
		Outside: {
			home + "/notes", home + "/.bashrc", home + "/.config/foo", home + "/.local/bin/other", home + "/.local/bin", "/home/other",
			"/tmp", "/mnt", "/mnt/disk/x", "/media/x", "/data/x", "/Users/x", home + "/.claude", home + "/.sshfoo", home + "/shopping",
			home + "/.claude/projects/a.jsonl", home + "/.config/triplines",
		},
	}
	for want, list := range tests {
		for _, p := range list {
			t.Run(string(want)+" "+p, func(t *testing.T) {
				t.Parallel()
				textOnly := New(Options{Homes: []string{home}, Cwd: shop, Project: shop})
				if got := textOnly.Place(p).Place; got != want {
					t.Errorf("by its text: %s; want %s", got, want)
				}
				if got := classifier(machine()).Place(p).Place; got != want {
					t.Errorf("on a machine: %s; want %s", got, want)
				}
			})
		}
	}
}

func TestMarksOfAPath(t *testing.T) {
	t.Parallel()
	c := classifier(machine())
	type marks struct {
		credentials, settings, top, sink, build bool
		sensitive                               string
	}
	tests := map[string]marks{
		"/":                                   {top: true},
		"/etc":                                {top: true},
		"/etc/hosts":                          {top: true},
		"/usr/local":                          {top: true},
		"/usr/local/go":                       {},
		"/data":                               {top: true},
		"/data/x":                             {},
		"/home":                               {},
		"/tmp":                                {},
		"/tmp/x":                              {},
		"/var/tmp":                            {top: true},
		"/var/spool/cron/dev":                 {sensitive: "crontab"},
		"/etc/cron.d/x":                       {sensitive: "crontab"},
		"/etc/systemd/system/x.service":       {sensitive: "unit"},
		"/dev/null":                           {sink: true},
		"/dev/fd/3":                           {sink: true},
		"/dev/sda":                            {},
		home + "/.ssh/id_work":                {credentials: true},
		home + "/.ssh":                        {credentials: true},
		home + "/.claude/settings.json":       {settings: true},
		home + "/.config/tripline":            {},
		home + "/.bashrc":                     {sensitive: "shell-start"},
		home + "/.config/fish/conf.d/a":       {sensitive: "shell-start"},
		home + "/.bash_history":               {sensitive: "history"},
		home + "/.config/systemd/user/a":      {sensitive: "unit"},
		home + "/.netrc":                      {sensitive: "secret-file"},
		shop + "/.env":                        {sensitive: "env-file"},
		shop + "/api/.env.local":              {sensitive: "env-file"},
		shop + "/.envrc":                      {sensitive: "env-file"},
		shop + "/.env.example":                {},
		shop + "/.environment.md":             {},
		shop + "/.bashrc":                     {},
		shop + "/node_modules":                {build: true},
		shop + "/a/node_modules/x/y":          {build: true},
		shop + "/build":                       {build: true},
		shop + "/rebuild":                     {},
		shop + "/src/pkg.egg-info":            {build: true},
		home + "/node_modules":                {},
		"/tmp/node_modules":                   {},
		shop + "/dist/.claude/settings.json":  {settings: true},
		"/etc/claude-code/managed-settings.x": {settings: true},
	}
	for p, want := range tests {
		r := c.Place(p)
		got := marks{r.Credentials, r.Settings, r.SystemTop, r.Sink, r.BuildDir, r.Sensitive}
		if got != want {
			t.Errorf("%s: %+v; want %+v", p, got, want)
		}
	}
	if r := c.Place(shop + "/a/dist/x/build/y"); r.BuildRoot != "a/dist/x/build" {
		t.Errorf("the nearest build directory is %q", r.BuildRoot)
	}
}

func TestWhatARecursiveOperationWouldTakeWithIt(t *testing.T) {
	t.Parallel()
	m := machine()
	m.AddFile(shop+"/.github/hooks/pre.json", nil)
	m.AddDir(shop + "/lib/.github/workflows")
	c := New(Options{Homes: []string{home}, Cwd: shop, Own: []string{"/tmp/lab/tl"}, Reader: m})
	for p, want := range map[string]string{
		home + "/.claude":              home + "/.claude/settings.json",
		home + "/.local/bin":           home + "/.local/bin/auditctl",
		home + "/.local/state":         home + "/.local/state/tripline",
		home + "/.config":              home + "/.config/tripline",
		home + "/.config/systemd":      home + "/.config/systemd/user/triplined.service",
		home + "/.config/systemd/user": home + "/.config/systemd/user/triplined.service",
		home + "/.config/opencode":     home + "/.config/opencode/opencode.json",
		home:                           home + "/.config/tripline",
		"/home":                        home + "/.config/tripline",
		shop + "/.claude":              shop + "/.claude/settings.json",
		shop + "/.github":              shop + "/.github/hooks",
		shop + "/lib/.github":          "",
		"/tmp/lab":                     "/tmp/lab/tl",
		"/tmp/labs":                    "",
		"/run/user/1000":               "/run/user/1000/tripline",
		"/var/lib":                     "/var/lib/tripline",
		shop + "/src":                  "",
		home + "/notes":                "",
		home + "/.config/foo":          "",
	} {
		if got, ok := c.Protects(p); got != want || ok != (want != "") {
			t.Errorf("Protects(%s) = %q, %v; want %q", p, got, ok, want)
		}
	}
}

func TestTheProjectRoot(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		o    Options
		dirs []string
		want string
	}{
		{"the nearest ancestor with .git", Options{Cwd: shop + "/a/b", FirstCwd: "/x/y"}, []string{shop + "/.git"}, shop},
		{"a .git in between is nearer", Options{Cwd: shop + "/a/b"}, []string{shop + "/.git", shop + "/a/.git"}, shop + "/a"},
		{"the first directory without .git", Options{Cwd: shop + "/a", FirstCwd: shop}, nil, shop},
		{"the current one where there is no first", Options{Cwd: shop}, nil, shop},
		{"the override", Options{Cwd: shop, Project: "/srv/x/y"}, []string{shop + "/.git"}, "/srv/x/y"},
		{"never /", Options{Cwd: "/"}, []string{"/.git"}, ""},
		{"never a direct child of /", Options{Cwd: "/app"}, []string{"/app/.git"}, ""},
		{"but below it", Options{Cwd: "/app/x"}, []string{"/app/.git"}, "/app/x"},
		{"/root may be one", Options{Cwd: "/root"}, []string{"/root/.git"}, "/root"},
		{"never in /etc", Options{Cwd: "/etc/nginx/x"}, []string{"/etc/nginx/.git"}, ""},
		{"never in /proc by override", Options{Cwd: shop, Project: "/proc/self/root"}, nil, ""},
		{"deep in /var", Options{Cwd: "/var/lib/jenkins/workspace/shop"}, nil, "/var/lib/jenkins/workspace/shop"},
		{"none when nothing is known", Options{}, nil, ""},
		{"none for a relative directory", Options{Cwd: "shop"}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := view.NewMemory()
			for _, d := range tt.dirs {
				m.AddDir(d)
			}
			tt.o.Reader = m
			if got := New(tt.o).Root(); got != tt.want {
				t.Errorf("root %q; want %q", got, tt.want)
			}
		})
	}
}

func TestAProjectWinsOverTheSystemDirectoryItIsIn(t *testing.T) {
	t.Parallel()
	c := New(Options{Homes: []string{"/var/lib/jenkins"}, Cwd: "/var/lib/jenkins/workspace/shop", Reader: view.NewMemory()})
	for p, want := range map[string]Place{
		"/var/lib/jenkins/workspace/shop/src": Project, "/var/lib/jenkins/workspace/shop": ProjectRoot,
		"/var/lib/jenkins/workspace": ProjectRoot, "/var/lib/jenkins": HomeRoot, "/var/lib": HomeRoot, "/var/lib/other": System,
		"/var/lib/jenkins/.ssh/x": HomeRoot, "/var/lib/jenkins/jobs": System,
	} {
		if got := c.Place(p).Place; got != want {
			t.Errorf("%s: %s; want %s", p, got, want)
		}
	}
}

func TestEveryKnownHomeCounts(t *testing.T) {
	t.Parallel()
	c := New(Options{Homes: []string{"/home/a/x", "/root", "/", "/etc", "/srv"}, Cwd: "/work/p", Reader: view.NewMemory()})
	for p, want := range map[string]Place{
		"/home/a/x": HomeRoot, "/home/a": HomeRoot, "/root": HomeRoot, "/root/.ssh/k": HomeRoot, "/root/x": Outside,
		"/home/a/x/.local/bin/tripline": Tripline, "/root/.config/tripline/x": Tripline, "/etc/x": System, "/srv": System,
	} {
		if got := c.Place(p).Place; got != want {
			t.Errorf("%s: %s; want %s", p, got, want)
		}
	}
	if c.Place("/root/x").SystemTop {
		t.Error("a file of root's home is a system directory's child although /root is a home")
	}
}

func TestLinksAreJudgedByBothEnds(t *testing.T) {
	t.Parallel()
	m := machine()
	m.AddLink("/tmp/x", home)
	m.AddLink(shop+"/up", "..")
	m.AddLink(shop+"/out", "/srv/data")
	m.AddLink(shop+"/conf", "../.claude/settings.json")
	m.AddLink(shop+"/loop", "loop")
	m.AddLink("/tmp/shop", shop+"/src")
	m.AddDir("/tmp/closed")
	m.Deny("/tmp/closed")
	c := classifier(m)
	tests := []struct {
		path         string
		place, named Place // links followed; the last one not followed
	}{
		{"/tmp/x", HomeRoot, Temp},
		{"/tmp/x/", HomeRoot, HomeRoot},
		{"/tmp/x/.", HomeRoot, HomeRoot},
		{"/tmp/x/notes", Outside, Outside},
		{"/tmp/x/.ssh/id_work", HomeRoot, HomeRoot},
		{shop + "/up", HomeRoot, Project},
		{shop + "/up/.claude/settings.json", Tripline, Tripline},
		{shop + "/out", System, Project},
		{shop + "/out/x", System, System},
		{shop + "/conf", Tripline, Project},
		{shop + "/loop", Project, Project},
		{"/tmp/shop", Project, Temp},
		{"/tmp/../etc", System, System},
		{"/tmp/x/../../etc/x", System, System},
		{shop + "/out/../x", System, System},
	}
	for _, tt := range tests {
		if got := c.Place(tt.path).Place; got != tt.place {
			t.Errorf("Place(%s) = %s; want %s", tt.path, got, tt.place)
		}
		if got := c.PlaceName(tt.path).Place; got != tt.named {
			t.Errorf("PlaceName(%s) = %s; want %s", tt.path, got, tt.named)
		}
	}
	for p, want := range map[string]bool{shop + "/loop": true, "/tmp/closed/x": true, "/tmp/open": false, "x": true, "/a/\x00": true} {
		if got := c.Place(p).Denied; got != want {
			t.Errorf("Denied of %q is %v; want %v", p, got, want)
		}
	}
	if r := c.Place(shop + "/out/x"); r.Path != "/srv/data/x" {
		t.Errorf("resolved to %q", r.Path)
	}
}

func TestTheSameFileByAnotherNameIsTheSamePlace(t *testing.T) {
	t.Parallel()
	m := machine()
	m.AddHardLink(shop+"/hard.json", home+"/.claude/settings.json")
	m.AddHardLink("/tmp/bin", home+"/.local/bin/triplined")
	m.AddHardLink("/tmp/key", home+"/.ssh/id_work")
	m.AddHardLink(shop+"/main2.go", shop+"/main.go")
	sameAs(m, "/mnt/h", home)
	sameAs(m, "/mnt/c", home+"/.claude")
	sameAs(m, "/mnt/all", "/")
	sameAs(m, "/tmp/ssh", home+"/.ssh")
	sameAs(m, shop+"/.GIT", shop+"/.git")
	m.AddFile(home+"/.claude/x", nil)
	m.AddFile(home+"/dotfiles/claude.json", []byte("{}"))
	m.AddLink(home+"/.codex/config.toml", "../dotfiles/claude.json")
	c := classifier(m)
	for p, want := range map[string]Place{
		shop + "/hard.json":                Tripline,
		"/tmp/bin":                         Tripline,
		"/tmp/key":                         HomeRoot,
		shop + "/main2.go":                 Project,
		"/mnt/h":                           HomeRoot,
		"/mnt/h/.local/bin/triplined":      Tripline,
		"/mnt/c/settings.json":             Tripline,
		"/mnt/all":                         HomeRoot,
		"/mnt/all/etc/x":                   System,
		"/tmp/ssh/id_work":                 HomeRoot,
		shop + "/.GIT":                     ProjectRoot,
		home + "/dotfiles/claude.json":     Tripline,
		"/proc/self/root" + home + "/.ssh": HomeRoot,
		"/proc/1/root/etc/passwd":          System,
		"/proc/self/cwd":                   ProjectRoot,
		"/proc/self/cwd/../.ssh/k":         HomeRoot,
		"/proc/self/task/7/root" + home:    HomeRoot,
		"/proc/thread-self/cwd/.git":       ProjectRoot,
	} {
		if got := c.Place(p).Place; got != want {
			t.Errorf("%s: %s; want %s", p, got, want)
		}
	}
	if r := c.Place("/tmp/key"); !r.Credentials {
		t.Error("a hard link to a key is not marked as credentials")
	}
	if r := c.Place("/mnt/c"); r.Holds == "" {
		t.Error("a second mount of an agent's directory holds nothing")
	}
}

// sameAs makes a directory at p that has the identity of old, as a bind mount has.
func sameAs(m *view.Memory, p, old string) {
	m.AddDir(p)
	info, err := m.Quiet().Lstat(old)
	if err != nil {
		panic(err)
	}
	m.SetInfo(p, func(i *view.Info) { i.Dev, i.Ino = info.Dev, info.Ino })
}

func TestAHomeOrProjectBehindALinkIsStillOne(t *testing.T) {
	t.Parallel()
	m := view.NewMemory()
	m.AddDir("/data/homes/dev/shop/.git")
	m.AddLink("/home/dev", "/data/homes/dev")
	c := classifier(m)
	for p, want := range map[string]Place{
		shop + "/src": Project, "/data/homes/dev/shop/src": Project, "/data/homes/dev": HomeRoot, "/data/homes": HomeRoot,
		"/data/homes/dev/.ssh/x": HomeRoot, "/data/homes/dev/.config/tripline": Tripline, "/data/homes/dev/shop": ProjectRoot,
	} {
		if got := c.Place(p).Place; got != want {
			t.Errorf("%s: %s; want %s", p, got, want)
		}
	}
}

func TestAbsKeepsADotDotThatGoesThroughALink(t *testing.T) {
	t.Parallel()
	m := machine()
	m.AddLink(shop+"/out", "/srv/data")
	c := classifier(m)
	for _, tt := range []struct{ cwd, word, want string }{
		{"", "src/../main.go", shop + "/main.go"},
		{"", "./a//b/", shop + "/a/b"},
		{"", "..", home},
		{"", ".", shop},
		{"/etc", "x", "/etc/x"},
		{"", "/a/./b/../c", "/a/c"},
		{"", "out/../x", shop + "/out/../x"},
		{shop + "/out", "../x", shop + "/out/../x"},
		{"rel", "x", ""},
	} {
		if got := c.Abs(tt.cwd, tt.word); got != tt.want {
			t.Errorf("Abs(%q, %q) = %q; want %q", tt.cwd, tt.word, got, tt.want)
		}
	}
}

func TestWordsThatFollow(t *testing.T) {
	t.Parallel()
	for w, want := range map[string]bool{"a": false, "a/": true, "a/.": true, "a/..": true, ".": true, "..": true, "": false, "a.": false, "/": true} {
		if got := Follows(w); got != want {
			t.Errorf("Follows(%q) = %v", w, got)
		}
	}
}

func TestADiskThatFoldsCaseKnowsOnePlaceForEverySpelling(t *testing.T) {
	t.Parallel()
	c := New(Options{Homes: []string{"/Users/Dev"}, Cwd: "/Users/Dev/Shop", Project: "/Users/Dev/Shop"})
	c.fold = true
	for p, want := range map[string]Place{
		"/users/dev/.CLAUDE/Settings.json": Tripline, "/Users/dev/library": HomeRoot, "/USERS/DEV/.SSH/k": HomeRoot,
		"/users/dev/shop": ProjectRoot, "/users/dev/SHOP/.GIT/config": ProjectRoot, "/Users/Dev/Shop/Src": Project,
		"/private/tmp/x": Temp, "/private/etc/hosts": System, "/Library/LaunchDaemons/sh.tripline.plist": Tripline,
		"/library/application support/claudecode/managed-settings.json": Tripline, "/System/x": System, "/Users": HomeRoot,
	} {
		if got := c.Place(p).Place; got != want {
			t.Errorf("%s: %s; want %s", p, got, want)
		}
	}
	if r := c.Place("/Users/dev/shop/Src/dist"); r.BuildRoot != "Src/dist" {
		t.Errorf("build directory %q", r.BuildRoot)
	}
}

func TestWhatIsThereIsTold(t *testing.T) {
	t.Parallel()
	c := classifier(machine())
	if r := c.Place(shop + "/main.go"); !r.Exists || !r.Info.Mode.IsRegular() || r.Info.Size != 12 {
		t.Errorf("a file: %+v", r)
	}
	if r := c.Place(shop + "/none"); r.Exists || r.Denied {
		t.Errorf("nothing: %+v", r)
	}
}

func FuzzPlace(f *testing.F) {
	for _, p := range []string{"/", shop, home + "/.ssh/x", "/tmp/x/../..", "/proc/self/root/etc", "/dev/fd/1", "/tmp/../etc", "//a//b/",
		"/proc/self/task/1/cwd/..", shop + "/node_modules/.claude/settings.json", "/run/user/1/tripline", "/home/dev/../dev/.aws", "/tmp/l/../x"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		m := machine()
		m.AddLink("/tmp/l", home+"/.config")
		c := classifier(m)
		text := New(Options{Homes: []string{home}, Cwd: shop, Project: shop})
		got := c.Place(p)
		c.PlaceName(p)
		c.Abs("", p)
		if !strings.HasPrefix(p, "/") || strings.Contains(p, "\x00") {
			if !got.Denied {
				t.Fatalf("%q was judged: %+v", p, got)
			}
			return
		}
		// Another spelling must never be weaker than the clean one by its text, nor may the machine weaken it.
		clean := text.Place(path.Clean(p))
		if severity(got.Place) < severity(clean.Place) && !got.Sink {
			t.Fatalf("%q is %s, and %s when clean", p, got.Place, clean.Place)
		}
		if other := text.Place(p); severity(other.Place) < severity(clean.Place) {
			t.Fatalf("%q is %s, and %s when clean", p, other.Place, clean.Place)
		}
	})
}

func BenchmarkPlaceByText(b *testing.B) {
	c := New(Options{Homes: []string{home, "/root"}, Cwd: shop, Project: shop})
	b.ReportAllocs()
	for b.Loop() {
		c.Place(shop + "/packages/web/node_modules/.bin/x")
	}
}

func BenchmarkDecisionWithOnePathOnTheDisk(b *testing.B) {
	dir := b.TempDir()
	pool := view.NewPool(8)
	b.ReportAllocs()
	for b.Loop() {
		c := New(Options{Homes: []string{dir, "/root"}, Cwd: dir + "/shop", Reader: pool.Reader(b.Context())})
		c.PlaceName(dir + "/shop/src/main.go")
	}
}

func BenchmarkFurtherPathOnTheDisk(b *testing.B) {
	dir := b.TempDir()
	c := New(Options{Homes: []string{dir, "/root"}, Cwd: dir + "/shop", Reader: view.NewPool(8).Reader(b.Context())})
	b.ReportAllocs()
	for b.Loop() {
		c.PlaceName(dir + "/shop/src/main.go")
	}
}
