// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"testing"
)

// BenchmarkRoundTrip is a whole exchange over the socket with its durable record; what it costs beyond the commit is the
// pipeline.
func BenchmarkRoundTrip(b *testing.B) {
	for name, command := range map[string]string{"ls": "ls -la", "rm": "rm -rf src", "compound": "cd src && git status && go test ./... | tee /tmp/out"} {
		b.Run(name, func(b *testing.B) {
			d := running(b)
			payload := d.bash(command, "1")
			b.ReportAllocs()
			for b.Loop() {
				d.send("PreToolUse", payload)
			}
		})
	}
}
