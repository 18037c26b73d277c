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
