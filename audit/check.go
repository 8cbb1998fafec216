// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/segment"
	"github.com/tripline-sh/tripline/audit/verify"
)

// Verify checks the whole log against its key, the last checkpoint beside the key, and the given anchors. The error says
// that it could not be checked; what was found is in the Verification. See package verify for the outcomes.
func (l *Log) Verify(ctx context.Context, anchors ...Anchor) (record.Verification, error) {
	last, err := readAnchor(l.o.KeyDir, l.key)
	if err != nil {
		return record.Verification{}, err
	}
	return check(ctx, l, l.key.Verifier(), last, anchors)
}

// check runs a verification over src.
func check(ctx context.Context, src source, vkey string, last anchor, anchors []Anchor) (record.Verification, error) {
	o := verify.Options{Verifier: vkey}
	for _, a := range anchors {
		o.Anchors = append(o.Anchors, verify.Anchor{Seq: a.Seq, Root: a.Root})
	}
	if last.seq() > 0 {
		o.Anchors = append(o.Anchors, verify.Anchor{Seq: last.seq(), Root: last.Root.String(), Weak: true})
	}
	fs := &files{src: src}
	v, err := verify.Run(ctx, &evidence{fs}, o)
	if err := errors.Join(err, fs.closeAll()); err != nil {
		return v, err
	}
	dir, _ := src.place()
	aside, err := setAsides(dir)
	if err != nil {
		return v, err
	}
	for _, file := range aside {
		v.Warnings = append(v.Warnings, "damaged: "+file+" was set aside and not checked")
	}
	return v, nil
}

// setAsides lists the damaged segments that were renamed.
func setAsides(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if base, _, ok := strings.Cut(e.Name(), "~corrupt-"); ok {
			if _, ok := segment.ParseName(base); ok {
				out = append(out, filepath.Base(e.Name()))
			}
		}
	}
	return out, nil
}

// evidence is a verify.Source over segments.
type evidence struct{ fs *files }

func (e *evidence) Names() ([]verify.Name, error) {
	list, err := e.fs.list()
	out := make([]verify.Name, len(list))
	for i, f := range list {
		out[i] = verify.Name{File: f.name.File(), First: f.name.First}
	}
	return out, err
}

func (e *evidence) Open(n verify.Name) (verify.Segment, error) {
	name, _ := segment.ParseName(n.File)
	x := &exhibit{f: &file{set: e.fs, name: name}}
	err := x.f.do(func(s *segment.Segment) error {
		x.meta = s.Meta()
		return nil
	})
	return x, told(err)
}

// told puts an error into the terms of package verify.
func told(err error) error {
	switch {
	case errors.Is(err, segment.ErrForeign):
		return fmt.Errorf("%w: %v", verify.ErrForeign, err)
	case errors.Is(err, segment.ErrDamaged):
		return fmt.Errorf("%w: %v", verify.ErrDamaged, err)
	}
	return err
}

// exhibit is a verify.Segment over a segment that may be live.
type exhibit struct {
	f    *file
	meta *record.SegmentMeta
}

func (x *exhibit) Meta() *record.SegmentMeta { return x.meta }

func (x *exhibit) Head() (size uint64, signed []byte, err error) {
	err = x.f.do(func(s *segment.Segment) error {
		h, err := s.Head()
		size, signed = h.Size, h.Checkpoint
		return err
	})
	return size, signed, told(err)
}

func (x *exhibit) Page(from uint64) (out []verify.Row, err error) {
	err = x.f.do(func(s *segment.Segment) error {
		rows, err := s.Page(from)
		if err != nil {
			return err
		}
		seqs := make([]uint64, len(rows))
		for i, row := range rows {
			seqs[i] = row.Seq
		}
		bodies, err := s.Bodies(seqs...)
		for _, row := range rows {
			out = append(out, verify.Row{Seq: row.Seq, Leaf: row.Leaf, Bodies: bodies[row.Seq]})
		}
		return err
	})
	return out, told(err)
}

func (x *exhibit) Checkpoints() (out [][]byte, err error) {
	err = x.f.do(func(s *segment.Segment) error {
		out, err = s.Checkpoints()
		return err
	})
	return out, told(err)
}

func (x *exhibit) ReadHashes(indexes []int64) (out []tlog.Hash, err error) {
	err = x.f.do(func(s *segment.Segment) error {
		out, err = s.ReadHashes(indexes)
		return err
	})
	return out, told(err)
}

func (x *exhibit) Close() error {
	if x.f.own == nil {
		return nil
	}
	return x.f.close()
}
