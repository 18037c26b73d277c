package docs

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	const document = "# A\n\n```console server\n$ serve\n```\n\n```go file=main.go\npackage main\n```\n## B\n\n" +
		"<!-- not run: it needs a network -->\n```sh\nwget x\n```\n\n```\ny\n```\n```text\nz\n```\n```console\n$ w\n```\n"
	want := []block{
		{line: 3, kind: server, text: "$ serve\n", after: true},
		{line: 7, kind: file, file: "main.go", text: "package main\n"},
		{line: 13, kind: other, text: "wget x\n", reason: "it needs a network", after: true},
		{line: 17, kind: other, text: "y\n"},
		{line: 20, kind: text, text: "z\n"},
		{line: 23, kind: commands, text: "$ w\n"},
	}
	if got := parse(document); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestParseCommands(t *testing.T) {
	got, err := parseCommands(10, "$ a \\\n  b\nout\n\n$ c\n")
	if err != nil || len(got) != 2 || got[0].text != "a \\\n  b" || !slices.Equal(got[0].want, []string{"out"}) || got[1].text != "c" || got[1].line != 14 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := parseCommands(1, "no command\n"); err == nil {
		t.Error("output without a command was accepted")
	}
}

func TestMissing(t *testing.T) {
	const output = "one\ntwo 2026 times\nthree\n"
	for _, test := range []struct {
		want []string
		miss string
	}{
		{nil, ""},
		{[]string{"one", "two … times"}, ""},
		{[]string{"three", "one"}, "one"},
		{[]string{"two … days"}, "two … days"},
	} {
		if got := missing(test.want, output); got != test.miss {
			t.Errorf("%q: got %q, want %q", test.want, got, test.miss)
		}
	}
}

// A command that fails, or prints something else, fails the test of its document.
func TestShell(t *testing.T) {
	s := newShell(t, ".")
	if err := s.check(command{text: "cd /; X=1", want: nil}); err != nil {
		t.Error(err)
	}
	if err := s.check(command{text: "pwd; echo $X", want: []string{"/", "1"}}); err != nil {
		t.Error("folder and variables are lost:", err)
	}
	for _, c := range []command{{text: "false"}, {text: "echo a", want: []string{"b"}}} {
		if s.check(c) == nil {
			t.Errorf("%s passed", c.text)
		}
	}
	if err := s.start(command{text: "bash -c 'echo ready; exec sleep 1000'", want: []string{"ready"}}); err != nil {
		t.Error(err)
	}
	s.endServer()
	if err := s.start(command{text: "echo gone", want: []string{"ready"}}); err == nil {
		t.Error("a server that ended passed")
	}
}
