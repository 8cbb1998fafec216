// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"
	"testing"
)

const typical = `cd /home/dev/shop && npm run build 2>&1 | tail -20 && for f in dist/*.js; do gzip -k "$f"; done; ` +
	`git add -A && git commit -q -m "build: compress assets" && echo "done $(date +%F)" >> build.log`

func BenchmarkTypical(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Analyze(typical, testOptions())
	}
}

func BenchmarkShort(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Analyze("rm -rf src", testOptions())
	}
}

func BenchmarkHard(b *testing.B) {
	for name, src := range hardSources() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Analyze(src, scriptOptions())
			}
		})
	}
}

// hardSources make the analysis work as much as it can within the caps.
func hardSources() map[string]string {
	var branches strings.Builder
	for i := range 1000 {
		branches.WriteString("a&&x" + itoa(i) + "=1;")
	}
	return map[string]string{
		"backquotes":        strings.Repeat("`", MaxSource),
		"evals":             strings.Repeat("eval ", MaxSource/5),
		"functions":         strings.Repeat("f() { ", MaxSource/6),
		"ifs":               strings.Repeat("if :; then ", 700) + ":" + strings.Repeat("; fi", 700),
		"arrays":            strings.Repeat("a=(", 4000) + "x" + strings.Repeat(")", 4000),
		"commands":          strings.Repeat("a;", MaxSource/2),
		"assignments":       strings.Repeat("x=$x$x;", MaxSource/7),
		"growth":            "x=aaaaaaaaaaaaaaaa;" + strings.Repeat("x=$x$x;", 40) + strings.Repeat("a $x $x $x;", 1000),
		"branches":          strings.Repeat("a&&x=$x;", MaxSource/8),
		"distinct branches": branches.String(),
		"loops":             strings.Repeat("for i in {1..9};do ", 8) + "rm $i" + strings.Repeat(";done", 8),
		"whiles":            strings.Repeat("while a;do ", 12) + "x=$x/y" + strings.Repeat(";done", 12),
		"calls": "a(){ b;b;b;};b(){ c;c;c;};c(){ d;d;d;};d(){ e;e;e;};e(){ f;f;f;};f(){ rm $RANDOM;};" +
			strings.Repeat("a;", 1000),
		"substitutions":  strings.Repeat("$(a)", MaxSource/4),
		"patterns":       "x=" + strings.Repeat("a", 500) + ";" + strings.Repeat("y=${x/*a*a*a*b/c};", 800),
		"globs":          "case " + strings.Repeat("a", 4000) + " in " + strings.Repeat("*a*a*a*a*a*a*b) :;; ", 500) + "esac",
		"braces":         "a " + strings.Repeat("{1,2,3,4,5,6,7,8,9}{1,2,3,4,5,6,7,8,9} ", 300),
		"open braces":    "a " + strings.Repeat("{a,", 5000),
		"here-documents": strings.Repeat("cat <<E\n$x\nE\n", 1000),
		"scripts":        strings.Repeat("sh deploy.sh;", 1000),
		"printf":         "printf '%s" + strings.Repeat("%s", 4000) + "' " + strings.Repeat("a ", 4000) + "| sh",
		"xargs":          "seq 1000 | xargs -n1 " + strings.Repeat("xargs ", 2000),
		"finds":          "find " + strings.Repeat("a ", 100) + strings.Repeat("-exec rm {} \\; ", 800),
		"pipes":          strings.Repeat("a|", 4000) + "a",
		"ands":           strings.Repeat("a&&", 4000) + "a",
		"tests":          "[[ " + strings.Repeat("( a && ", 1500) + "a" + strings.Repeat(" )", 1500) + " ]]",
		"arithmetic":     "((" + strings.Repeat("x+=1,", 3000) + "1))",
		"locals":         "f(){ " + strings.Repeat("local a=1;", 1000) + "}; " + strings.Repeat("f;", 500),
		"states":         strings.Repeat("if a; then x=$x/1; elif b; then y=$y/2; else cd z; fi;", 250),
	}
}
