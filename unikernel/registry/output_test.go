package registry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// outputOf returns a detached guest that runs, and the store of its output with a small size of parts.
func outputOf(t *testing.T) (*Entry, *Output, *Guest) {
	t.Helper()
	r := newRegistry(t)
	e := create(t, r, Record{Name: "a", Detached: true})
	e.Start()
	o := e.Output()
	o.max = 100
	g, err := r.Find("a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return e, o, g
}

// printed returns what Print prints.
func printed(t *testing.T, g *Guest, how Reading) string {
	t.Helper()
	var b bytes.Buffer
	if err := g.Print(t.Context(), &b, how); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The stored output is bounded, and is always the end of the output.
func TestOutputIsBounded(t *testing.T) {
	e, o, g := outputOf(t)
	defer e.End(0, "")
	var all strings.Builder
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range 300 {
		line := fmt.Sprint(i, strings.Repeat("x", rng.IntN(30)), "\n")
		all.WriteString(line)
		o.Write([]byte(line))
		got := printed(t, g, Reading{Tail: -1})
		if !strings.HasSuffix(all.String(), got) || len(got) < min(all.Len(), 100) || len(got) > 2*(100+40) {
			t.Fatalf("after %d bytes, %d are stored:\n%s", all.Len(), len(got), got)
		}
		if numbers, err := parts(e.dir); err != nil || len(numbers) > 2 {
			t.Fatalf("parts %v, %v", numbers, err)
		}
	}
	o.Close()
}

func TestTail(t *testing.T) {
	for _, test := range []struct {
		text string
		n    int
		want string
	}{
		{"", 3, ""}, {"a\nb\nc\n", -1, "a\nb\nc\n"}, {"a\nb\nc\n", 0, ""}, {"a\nb\nc\n", 1, "c\n"}, {"a\nb\nc\n", 2, "b\nc\n"},
		{"a\nb\nc\n", 9, "a\nb\nc\n"}, {"a\nb", 1, "b"}, {"a\nb", 2, "a\nb"}, {"\n\n", 1, "\n"}, {"a", 1, "a"},
	} {
		if got := string(tail([]byte(test.text), test.n)); got != test.want {
			t.Errorf("the last %d lines of %q are %q", test.n, test.text, got)
		}
	}
}

// notifying is a writer that counts bytes, and signals each write.
type notifying struct {
	bytes.Buffer
	wrote chan int // Write sends the number of bytes so far; the test receives each
}

func (n *notifying) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n.Buffer.Write(p)
	n.wrote <- n.Len()
	return len(p), nil
}

// A reader that follows the output gets all of it, across parts, until the guest ends.
func TestFollow(t *testing.T) {
	e, o, g := outputOf(t)
	o.Write([]byte("one\ntwo\n"))
	w := &notifying{wrote: make(chan int)}
	done := make(chan error, 1) // Print's result
	go func() {
		done <- g.Print(t.Context(), w, Reading{Tail: 1, Follow: true, Skipped: func(int) { t.Error("parts were skipped") }})
	}()
	want := "two\n"
	for <-w.wrote < len(want) {
	}
	for i := range 40 { // each line is read before the next one is written, so none can be missed
		line := fmt.Sprint("line ", i, "\n")
		want += line
		o.Write([]byte(line))
		for <-w.wrote < len(want) {
		}
	}
	o.Write([]byte("last"))
	want += "last"
	o.Close()
	e.End(0, "")
	for <-w.wrote < len(want) {
	}
	if err := <-done; err != nil || w.String() != want {
		t.Errorf("%v, %q", err, w.String())
	}
}

// A reader that is too slow learns how much it has missed.
func TestSkippedParts(t *testing.T) {
	e, o, g := outputOf(t)
	part := bytes.Repeat([]byte("x"), 100)
	o.Write(part)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	skipped := make(chan int, 1) // the number of skipped parts
	first := make(chan struct{})
	w := writer(func(p []byte) {
		if first != nil && len(p) > 0 {
			first = nil
			for range 5 {
				o.Write(part)
			}
			o.Close()
			e.End(0, "")
		}
	})
	if err := g.Print(ctx, w, Reading{Tail: -1, Follow: true, Skipped: func(n int) { skipped <- n }}); err != nil {
		t.Fatal(err)
	}
	if n := <-skipped; n != 3 { // parts 2 to 4 of 6
		t.Errorf("%d parts are skipped", n)
	}
}

// writer calls a function for each write.
type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// Output that cannot be stored does not block the guest. When it can be stored again, a line says how much was lost.
func TestLostOutput(t *testing.T) {
	e, o, g := outputOf(t)
	defer e.End(0, "")
	o.Write([]byte("first\n"))
	readOnly, err := os.OpenFile("/dev/null", os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	good := o.file
	o.file = readOnly // every write fails
	if n, err := o.Write([]byte("lost\n")); n != 5 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	readOnly.Close()
	o.file = good
	io.WriteString(o, "last\n")
	o.Close()
	want := "first\n\nloam: 5 bytes of output were lost, because they could not be stored\nlast\n"
	if got := printed(t, g, Reading{Tail: -1}); got != want {
		t.Errorf("%q", got)
	}
}
