// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// monitoring is a Prometheus and an Alertmanager that run on loopback with the project's own files.
type monitoring struct{ api string }

// newMonitoring starts both with the examples of contrib/prometheus, of which only addresses and waits are changed.
func newMonitoring(t *testing.T, programs [2]string, daemon, webhook string) *monitoring {
	t.Helper()
	dir := t.TempDir()
	prometheus, alertmanager := freePort(t), freePort(t)
	rules, err := filepath.Abs("../prometheus/tripline.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	adapt(t, "../prometheus/prometheus.yml", filepath.Join(dir, "prometheus.yml"),
		"[tripline.rules.yml]", "['"+rules+"']", "127.0.0.1:9093", alertmanager, "127.0.0.1:9717", daemon,
		"scrape_interval: 15s", "scrape_interval: 1s", "evaluation_interval: 15s", "evaluation_interval: 1s")
	adapt(t, "../prometheus/alertmanager.yml", filepath.Join(dir, "alertmanager.yml"),
		"http://127.0.0.1:9099/tripline", webhook, "group_wait: 30s", "group_wait: 1s", "group_wait: 5s", "group_wait: 1s", "group_interval: 5m", "group_interval: 1s")
	m := &monitoring{api: "http://" + prometheus}
	launch(t, dir, programs[1], "--config.file=alertmanager.yml", "--storage.path=alerts", "--web.listen-address="+alertmanager, "--cluster.listen-address=")
	launch(t, dir, programs[0], "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address="+prometheus)
	for _, address := range []string{prometheus, alertmanager} {
		eventually(t, address+" is ready", func() error {
			resp, err := http.Get("http://" + address + "/-/ready")
			if err != nil {
				return err
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return errors.New(resp.Status)
			}
			return nil
		})
	}
	return m
}

// adapt copies a file with some of its text replaced; all of that must be there.
func adapt(t *testing.T, from, to string, pairs ...string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(string(data), pairs[i]) {
			t.Fatalf("%s does not hold %q", from, pairs[i])
		}
	}
	if err := os.WriteFile(to, []byte(strings.NewReplacer(pairs...).Replace(string(data))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// freePort is an address on loopback that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// launch starts a program, and ends it by its process when the test is over.
func launch(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	var log lockedBuffer
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &log, &log
	cmd.Env = []string{"HOME=" + dir, "PATH=/usr/bin:/bin"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(program), log.String())
		}
	})
}

// eventually polls until a condition holds, for half a minute at most.
func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s: %v", what, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("the test ended before: %s", what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ask asks the API of Prometheus.
func (m *monitoring) ask(path string, into any) error {
	resp, err := http.Get(m.api + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return err
	}
	reply := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.Unmarshal(body, &reply); err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	if reply.Status != "success" {
		return fmt.Errorf("%s: %s", reply.Status, reply.Error)
	}
	return nil
}

// query returns the values of an expression.
func (m *monitoring) query(expr string) (values []string, err error) {
	var data struct {
		ResultType string
		Result     []struct{ Value [2]any }
	}
	if err := m.ask("/api/v1/query?query="+url.QueryEscape(expr), &data); err != nil {
		return nil, err
	}
	for _, r := range data.Result {
		values = append(values, fmt.Sprint(r.Value[1]))
	}
	return values, nil
}

// hasData is nil if an expression has at least one value that is a number.
func (m *monitoring) hasData(expr string) error {
	values, err := m.query(expr)
	if err != nil {
		return err
	}
	for _, v := range values {
		if v != "NaN" {
			return nil
		}
	}
	return fmt.Errorf("no data: %v", values)
}

// firing are the names of the alerts that fire.
func (m *monitoring) firing() (map[string]bool, error) {
	var data struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	if err := m.ask("/api/v1/alerts", &data); err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, a := range data.Alerts {
		if a.State == "firing" {
			out[a.Labels["alertname"]] = true
		}
	}
	return out, nil
}

// receiver is a webhook that remembers what Alertmanager told it.
type receiver struct {
	URL string

	mu     sync.Mutex
	alerts []delivered
}

type delivered struct {
	Status              string
	Labels, Annotations map[string]string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var body struct{ Alerts []delivered }
		if err := json.NewDecoder(io.LimitReader(req.Body, 1<<20)).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.alerts = append(r.alerts, body.Alerts...)
	}))
	t.Cleanup(s.Close)
	r.URL = s.URL
	return r
}

// told is nil if the receiver was told that an alert of that name, for that rule, fires.
func (r *receiver) told(alert string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.alerts {
		if a.Status == "firing" && a.Labels["alertname"]+" "+a.Labels["rule"] == alert && a.Labels["severity"] != "" {
			return nil
		}
	}
	return fmt.Errorf("it was told of %d alerts: %v", len(r.alerts), r.alerts)
}

// runbook is the page that came with an alert.
func (r *receiver) runbook(alert string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.alerts {
		if a.Labels["alertname"] == alert {
			return a.Annotations["runbook_url"]
		}
	}
	return ""
}
