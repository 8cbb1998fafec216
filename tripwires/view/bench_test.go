// SPDX-License-Identifier: Apache-2.0

package view

import (
	"path/filepath"
	"testing"
)

func BenchmarkLstat(b *testing.B) {
	dir, p := b.TempDir(), NewPool(4)
	for b.Loop() {
		if _, err := p.Reader(b.Context()).Lstat(dir); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStatBelow30NamesThatAreNotThere(b *testing.B) {
	dir := b.TempDir()
	var names []string
	for i := range 30 {
		names = append(names, filepath.Join(".config", string(rune('a'+i)), "x"))
	}
	r := NewPool(4).Reader(b.Context())
	for b.Loop() {
		if _, err := r.StatBelow(dir, names); err != nil {
			b.Fatal(err)
		}
	}
}
