// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
)

// Label names the daemon to launchd.
const Label = "sh.tripline.triplined"

// launchd is the user's session of macOS. Its own way to hand sockets over needs C, so the daemon opens them itself.
type launchd struct {
	h      Host
	in     Install
	domain string // gui/UID
	plist  file
	words  logTail
}

// findLaunchd returns launchd if the user has a session there; else it says why not.
func findLaunchd(ctx context.Context, h Host, in Install) (*launchd, string) {
	if h.Home == "" {
		return nil, "this user has no home directory"
	}
	domain := "gui/" + strconv.Itoa(h.UID)
	if _, err := h.run(ctx, probeTime, "launchctl", "print", domain); err != nil {
		return nil, "launchd has no session of this user (" + err.Error() + ")"
	}
	return &launchd{
		h: h, in: in, domain: domain,
		plist: file{filepath.Join(h.Home, "Library", "LaunchAgents", Label+".plist"), plistText(&in)},
		words: logTail{path: in.LogFile},
	}, ""
}

// plistText is the agent's property list: begun at login, and again when it fails.
func plistText(in *Install) []byte {
	var b bytes.Buffer
	str := func(s string) string {
		var e strings.Builder
		_ = xml.EscapeText(&e, []byte(s)) // a strings.Builder takes everything
		return "<string>" + e.String() + "</string>"
	}
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- ` + header + ` -->
<plist version="1.0">
<dict>
	<key>Label</key>
	` + str(Label) + `
	<key>ProgramArguments</key>
	<array>
`)
	for _, arg := range append(append([]string{in.Program}, in.Args...), "--started-by", Launchd, "--log-file", in.LogFile) {
		b.WriteString("\t\t" + str(arg) + "\n")
	}
	b.WriteString(`	</array>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>ProcessType</key>
	<string>Background</string>
	<key>Umask</key>
	<integer>63</integer>
</dict>
</plist>
`)
	return b.Bytes()
}

func (l *launchd) Name() string { return Launchd }

func (l *launchd) target() string { return l.domain + "/" + Label }

func (l *launchd) loaded(ctx context.Context) bool {
	_, err := l.h.run(ctx, probeTime, "launchctl", "print", l.target())
	return err == nil
}

func (l *launchd) Start(ctx context.Context) (<-chan error, error) {
	l.words.mark()
	changed, err := l.plist.write()
	if err != nil {
		return nil, err
	}
	loaded := l.loaded(ctx)
	if loaded && changed {
		if err := l.Stop(ctx); err != nil {
			return nil, err
		}
		loaded = false
	}
	if !loaded {
		if _, err := l.h.run(ctx, workTime, "launchctl", "bootstrap", l.domain, l.plist.path); err != nil {
			return nil, err
		}
	}
	_, err = l.h.run(ctx, workTime, "launchctl", "kickstart", l.target())
	return nil, err
}

func (l *launchd) Restart(ctx context.Context) (<-chan error, error) {
	if err := l.Stop(ctx); err != nil {
		return nil, err
	}
	return l.Start(ctx)
}

func (l *launchd) Stop(ctx context.Context) error {
	if !l.loaded(ctx) {
		return nil
	}
	_, err := l.h.run(ctx, workTime, "launchctl", "bootout", l.target())
	return err
}

func (l *launchd) Disable(ctx context.Context) ([]string, error) {
	err := l.Stop(ctx)
	gone, rerr := l.plist.remove()
	if gone {
		return []string{l.plist.path}, errors.Join(err, rerr)
	}
	return nil, errors.Join(err, rerr)
}

func (l *launchd) Where() string                    { return written(l.in.LogFile) }
func (l *launchd) LastWords(context.Context) string { return l.words.read() }
func (l *launchd) Notes() []string                  { return nil }
