// Command sample draws comments and sentences from the tree at random, for a reader who judges whether
// they are understood at the first reading. The same seed draws the same sample from the same tree.
//
//	go run ./internal/house/sample -seed 7
//	make sample SEED=7
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"

	"loam/internal/house/english"
)

func main() {
	seed := flag.Uint64("seed", 1, "draw this sample")
	comments := flag.Int("comments", 100, "number of comments")
	sentences := flag.Int("sentences", 50, "number of sentences from documents")
	under := flag.String("under", "", "draw only from files whose path begins with this")
	flag.Parse()
	code, documents, err := prose(os.DirFS("."), *under)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sample:", err)
		os.Exit(1)
	}
	r := rand.New(rand.NewPCG(*seed, 0))
	for i, p := range draw(r, code, *comments) {
		fmt.Printf("%d. %s", i+1, comment(p))
	}
	for i, p := range draw(r, documents, *sentences) {
		fmt.Printf("%d. %s", i+1, sentence(p))
	}
}

// comment returns a comment for the reader, with the enclosing declaration above it and its line of code below it.
func comment(p english.Passage) string {
	text := fmt.Sprintf("%s:%d\n", p.File, p.Line) + context("above", p.Above)
	for line := range strings.Lines(p.Text) {
		text += "   // " + line
	}
	return text + fmt.Sprintf("   %s\n\n", p.Code)
}

// sentence returns a sentence of a document for the reader, with its headings and the sentence before it.
func sentence(p english.Passage) string {
	text := fmt.Sprintf("%s:%d\n", p.File, p.Line) + context("above", p.Above) + context("after", p.Code)
	return text + fmt.Sprintf("   %s\n\n", strings.TrimSpace(p.Text))
}

// context returns text in parentheses with a label, or "" if there is no text.
func context(label, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("   (%s: %s)\n", label, strings.ReplaceAll(text, "\n", "\n           "))
}

// prose returns the comments of the code, and the documents split into sentences.
func prose(tree fs.FS, under string) (code, documents []english.Passage, err error) {
	err = english.Walk(tree, func(p english.Passage) {
		switch {
		case !strings.HasPrefix(p.File, under):
		case strings.HasSuffix(p.File, ".md"):
			documents = append(documents, split(p)...)
		default:
			code = append(code, p)
		}
	})
	return code, documents, err
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?]["'` + "`" + `)]*\s+`)
	word        = regexp.MustCompile(`\pL{2,}`)
)

// split returns the sentences of a paragraph that have at least four words. Code of a sentence is the sentence before it in
// the paragraph.
func split(p english.Passage) (all []english.Passage) {
	rest, before := strings.Join(strings.Fields(p.Text), " "), ""
	add := func(text string) {
		if len(word.FindAllString(text, -1)) >= 4 {
			all = append(all, english.Passage{File: p.File, Line: p.Line, Text: text, Code: before, Above: p.Above})
		}
		before = strings.TrimSpace(text)
	}
	for {
		at := sentenceEnd.FindStringIndex(rest)
		if at == nil {
			add(rest)
			return all
		}
		add(rest[:at[1]])
		rest = rest[at[1]:]
	}
}

// draw returns n different passages of all, in the order of the tree.
func draw(r *rand.Rand, all []english.Passage, n int) []english.Passage {
	var drawn []english.Passage
	for _, i := range r.Perm(len(all))[:min(n, len(all))] {
		drawn = append(drawn, all[i])
	}
	slices.SortStableFunc(drawn, func(a, b english.Passage) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return drawn
}
