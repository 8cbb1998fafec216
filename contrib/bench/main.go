// SPDX-License-Identifier: Apache-2.0

// Bench measures whole processes in one run, alternating, so that a noisy machine disturbs all sides alike: a hook's full round
// trip with a durable verdict against an empty Go program and a bare bbolt commit of 1 KB in the same directory. It also
// prints the daemon's idle memory, its latency by stage, and the sizes of the programs. Nothing here passes or fails.
//
//	go run ./contrib/bench -n 500
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
)

func main() {
	n := flag.Int("n", 500, "number of alternating rounds")
	keep := flag.String("dir", "", "directory for the log and the programs (default: a temporary one)")
	flag.Parse()
	if err := run(*n, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const payload = `{"session_id":"bench","transcript_path":"","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls -la","description":"list"},"tool_use_id":"bench-1"}`

func run(n int, dir string) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "tripline-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	bin := filepath.Join(dir, "bin")
	build := exec.Command("contrib/dev/build.sh", bin)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build (run it from the root of the checkout): %w", err)
	}
	if err := buildEmpty(bin); err != nil {
		return err
	}
	d, err := startDaemon(bin, dir)
	if err != nil {
		return err
	}
	defer d.stop()
	idle := rss(d.cmd.Process.Pid)
	db, err := bolt.Open(filepath.Join(dir, "home", "state", "bare.db"), 0o600, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return err
	}
	defer db.Close()

	var hook, empty, commit []time.Duration
	value := bytes.Repeat([]byte("x"), 1024)
	for i := range n + 10 { // the first ten warm up
		h, err := timed(d.hook(bin))
		if err != nil {
			return err
		}
		e, err := timed(exec.Command(filepath.Join(bin, "empty")))
		if err != nil {
			return err
		}
		start := time.Now()
		err = db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("b"))
			if err != nil {
				return err
			}
			return b.Put([]byte(fmt.Sprintf("%016d", i)), value)
		})
		c := time.Since(start)
		if err != nil {
			return err
		}
		if i >= 10 {
			hook, empty, commit = append(hook, h), append(empty, e), append(commit, c)
		}
	}
	ratio := make([]float64, n)
	for i := range ratio {
		ratio[i] = float64(hook[i]) / float64(empty[i]+commit[i])
	}
	slices.Sort(ratio)
	fmt.Printf("%d alternating rounds, medians\n", n)
	fmt.Printf("  hook round trip, durable verdict   %8.2f ms\n", ms(median(hook)))
	fmt.Printf("  empty Go program                   %8.2f ms\n", ms(median(empty)))
	fmt.Printf("  bare bbolt commit of 1 KB          %8.2f ms\n", ms(median(commit)))
	fmt.Printf("  ratio of medians, hook / (empty + commit)  %.2f   (goal 1.6)\n", float64(median(hook))/float64(median(empty)+median(commit)))
	fmt.Printf("  median of paired ratios                    %.2f\n", ratio[n/2])
	fmt.Printf("daemon: idle RSS at start %.1f MB, after the run %.1f MB   (goal 40)\n", idle, rss(d.cmd.Process.Pid))
	for _, name := range []string{"tripline-hook", "triplined", "auditctl"} {
		if fi, err := os.Stat(filepath.Join(bin, name)); err == nil {
			fmt.Printf("size of %-13s %6.2f MB\n", name, float64(fi.Size())/1e6)
		}
	}
	return d.stages()
}

func buildEmpty(bin string) error {
	src := filepath.Join(bin, "empty.go")
	if err := os.WriteFile(src, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(bin, "empty"), src)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// daemon is a triplined with a home of its own.
type daemon struct {
	cmd    *exec.Cmd
	home   string
	socket string
}

func startDaemon(bin, dir string) (*daemon, error) {
	d := &daemon{home: filepath.Join(dir, "home")}
	d.socket = filepath.Join(d.home, "run", "hook.sock")
	if err := os.MkdirAll(d.home, 0o700); err != nil {
		return nil, err
	}
	d.cmd = exec.Command(filepath.Join(bin, "triplined"), "--metrics-listen", "unix:"+filepath.Join(d.home, "metrics.sock"))
	d.cmd.Env = []string{"HOME=" + d.home, "TRIPLINE_HOME=" + d.home, "PATH=/usr/bin:/bin"}
	var log bytes.Buffer
	d.cmd.Stderr = &log
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := timed(d.hook(bin)); err == nil {
			return d, nil
		}
	}
	d.stop()
	return nil, fmt.Errorf("the daemon did not come up:\n%s", log.String())
}

func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_ = d.cmd.Wait()
}

func (d *daemon) hook(bin string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, "tripline-hook"), "-s", d.socket, "claude", "PreToolUse")
	cmd.Stdin = strings.NewReader(payload)
	return cmd
}

// stages prints the mean latency of each stage from the daemon's own histograms.
func (d *daemon) stages() error {
	out, err := exec.Command("curl", "-s", "--unix-socket", filepath.Join(d.home, "metrics.sock"), "http://localhost/metrics").Output()
	if errors.Is(err, exec.ErrNotFound) {
		fmt.Println("curl is not installed: no latency by stage")
		return nil
	}
	if err != nil {
		return err
	}
	sum, count := map[string]float64{}, map[string]float64{}
	var order []string
	for line := range strings.Lines(string(out)) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), "{stage=\"")
		if !ok {
			continue
		}
		stage, value, _ := strings.Cut(rest, "\"} ")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch name {
		case "tripline_stage_duration_seconds_sum":
			sum[stage] = v
			order = append(order, stage)
		case "tripline_stage_duration_seconds_count":
			count[stage] = v
		}
	}
	fmt.Println("latency by stage, mean")
	for _, s := range order {
		if count[s] > 0 {
			fmt.Printf("  %-8s %8.3f ms  (%.0f)\n", s, 1000*sum[s]/count[s], count[s])
		}
	}
	return nil
}

func timed(cmd *exec.Cmd) (time.Duration, error) {
	start := time.Now()
	out, err := cmd.CombinedOutput()
	d := time.Since(start)
	if err != nil {
		return d, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, out)
	}
	return d, nil
}

func median(ds []time.Duration) time.Duration {
	s := slices.Clone(ds)
	slices.Sort(s)
	return s[len(s)/2]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// rss is the resident memory of a process in MB, 0 if it cannot be told.
func rss(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(v)[0], 64)
			return kb / 1024
		}
	}
	return 0
}
