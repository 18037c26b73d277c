package main

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/fstest"

	"loam/internal/house/english"
)

func TestProse(t *testing.T) {
	tree := fstest.MapFS{
		"a/a.go":          {Data: []byte("// Package a is an example.\npackage a\n")},
		"a/testdata/b.go": {Data: []byte("// not part of the sample\npackage b\n")},
		"c.md":            {Data: []byte("This is one sentence. And this is a second\none: it goes on here. Too short.\n")},
	}
	code, documents, err := prose(tree, "")
	if err != nil || len(code) != 1 || len(documents) != 2 {
		t.Errorf("got %v, %v, %v", code, documents, err)
	}
	if code, documents, _ := prose(tree, "a/"); len(code) != 1 || len(documents) != 0 {
		t.Errorf("below a: got %v, %v", code, documents)
	}
}

// The same seed draws the same passages, each of them once.
func TestDraw(t *testing.T) {
	all := make([]english.Passage, 50)
	for i := range all {
		all[i].Line = i
	}
	a := draw(rand.New(rand.NewPCG(7, 0)), all, 20)
	b := draw(rand.New(rand.NewPCG(7, 0)), all, 20)
	if len(a) != 20 || !reflect.DeepEqual(a, b) {
		t.Errorf("got %v and %v", a, b)
	}
	for i := range a[1:] {
		if a[i].Line >= a[i+1].Line {
			t.Errorf("not in order, or twice: %v", a)
		}
	}
}

// The sample shows a reader what an editor has on the screen around a comment or a sentence.
func TestContext(t *testing.T) {
	tree := fstest.MapFS{
		"a.go": {Data: []byte("package a\n\n// T is a type.\ntype T struct {\n\tn int // a number\n}\n")},
		"b.md": {Data: []byte("# Title\n\n## Part\n\nThis is the first sentence. And this is the second one.\n\n| name | meaning |\n|---|---|\n| a | a table row of some words |\n")},
	}
	code, documents, err := prose(tree, "")
	if err != nil || len(code) != 2 || len(documents) != 3 {
		t.Fatalf("got %v, %v, %v", code, documents, err)
	}
	for _, test := range []struct{ got, want string }{
		{comment(code[0]), "a.go:3\n   // T is a type.\n   type T struct {\n\n"},
		{comment(code[1]), "a.go:5\n   (above: // T is a type.\n           type T struct {)\n   // a number\n   n int\n\n"},
		{sentence(documents[0]), "b.md:5\n   (above: # Title > ## Part)\n   This is the first sentence.\n\n"},
		{sentence(documents[1]), "b.md:5\n   (above: # Title > ## Part)\n   (after: This is the first sentence.)\n   And this is the second one.\n\n"},
		{sentence(documents[2]), "b.md:9\n   (above: # Title > ## Part\n           | name | meaning |)\n   | a | a table row of some words |\n\n"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}
