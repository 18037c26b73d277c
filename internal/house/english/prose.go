// Package english extracts the prose of the tree, which is comments and Markdown text, and finds
// phrases in it that readers do not understand at the first reading. Package house has the tests, and
// command internal/house/sample draws samples for a reader.
package english

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// Passage is a piece of prose: a comment group, or a paragraph, list item or table row of a document.
type Passage struct {
	File string
	Line int    // number of the first line of Text
	Text string // without comment markers; lines end with "\n"
	// Code is the code that a comment is about: before it on its line, or on the next line. It is empty in a document.
	Code string
	// Above is the text that a reader of the file sees above the passage. For a comment inside a declaration, it is the doc comment and the head of the
	// declaration: a function's signature, or the first line of a type or of a group. For assembly, it is the TEXT line with its
	// comment. For a document, it is the path of headings, and for a table row also the first row of the table.
	Above string
}

// Lines returns the number of lines of the passage.
func (p Passage) Lines() int { return strings.Count(p.Text, "\n") }

// Passages returns the prose of a file: of Go and assembly the comments, of Markdown the text. Other
// files and generated Go files have none.
func Passages(file string, src []byte) ([]Passage, error) {
	switch path.Ext(file) {
	case ".go":
		return goComments(file, src)
	case ".s":
		return lineComments(file, src), nil
	case ".md":
		return paragraphs(file, src), nil
	}
	return nil, nil
}

// goComments returns the comment groups of a Go file. Directives such as //go:build are left out.
func goComments(file string, src []byte) ([]Passage, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(tree) {
		return nil, nil
	}
	source := goSource{fset, tree, string(src)}
	code := strings.Split(string(src), "\n")
	var all []Passage
	for _, group := range tree.Comments {
		p := Passage{File: file, Line: source.line(group.Pos()), Above: source.above(group)}
		for _, c := range group.List {
			p.Text += commentText(c.Text)
		}
		p.Code = strings.TrimSpace(code[p.Line-1][:fset.Position(group.Pos()).Column-1])
		if end := fset.Position(group.End()).Line; p.Code == "" && end < len(code) {
			p.Code = strings.TrimSpace(code[end])
		}
		if strings.TrimSpace(p.Text) != "" {
			all = append(all, p)
		}
	}
	return all, nil
}

var directive = regexp.MustCompile(`^//(go:|line |export |extern |lint:|nolint|[a-z]+:[a-z])`)

// commentText returns the text of one comment, with one "\n" for each line of source.
func commentText(c string) string {
	if directive.MatchString(c) {
		return "\n"
	}
	if rest, ok := strings.CutPrefix(c, "//"); ok {
		return strings.TrimPrefix(rest, " ") + "\n"
	}
	return strings.TrimSuffix(strings.TrimPrefix(c, "/*"), "*/") + "\n"
}

// lineComments returns the comments of an assembly file: consecutive lines that begin with "//".
func lineComments(file string, src []byte) []Passage {
	var all []Passage
	var p Passage
	n, doc, function := 0, "", ""
	for line := range strings.Lines(string(src) + "\n") {
		n++
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "//")
		switch {
		case ok && !strings.HasPrefix(line, "//"): // inside a function
		case ok:
			doc += line
			function = ""
		case strings.HasPrefix(line, "TEXT "):
			function, doc = doc+strings.TrimSpace(line), ""
		default:
			doc = ""
		}
		switch {
		case ok && p.Text == "":
			p = Passage{File: file, Line: n, Text: strings.TrimSpace(rest) + "\n", Above: function}
		case ok:
			p.Text += strings.TrimSpace(rest) + "\n"
		case p.Text != "":
			p.Code = strings.TrimSpace(line)
			all, p = append(all, p), Passage{}
		}
	}
	return all
}

var (
	item   = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
	rule   = regexp.MustCompile(`^[|\s:-]*$`)
	linkTo = regexp.MustCompile(`\]\([^)]*\)`)
)

// paragraphs returns the paragraphs, list items and table rows of a Markdown document, without code
// blocks, headings and rows of figures.
func paragraphs(file string, src []byte) []Passage {
	var all []Passage
	var p Passage
	end := func() {
		if strings.TrimSpace(p.Text) != "" {
			all = append(all, p)
		}
		p = Passage{}
	}
	n, code := 0, false
	var position outline
	for line := range strings.Lines(string(src) + "\n") {
		n++
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			end()
			continue
		}
		if !code {
			position.read(line)
		}
		row := strings.HasPrefix(line, "|")
		if code || rule.MatchString(line) || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "    ") && p.Text == "" {
			end()
			continue
		}
		if row || item.MatchString(line) {
			end()
		}
		if p.Text == "" {
			p = Passage{File: file, Line: n, Above: position.above()}
		}
		if row && position.header == "" {
			position.header = strings.TrimSpace(line)
		}
		p.Text += linkTo.ReplaceAllString(line, "]") + "\n"
	}
	end()
	return all
}

// Walk calls visit for every passage of a tree. It skips hidden folders and test data.
func Walk(tree fs.FS, visit func(Passage)) error {
	return fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "testdata" || len(d.Name()) > 1 && d.Name()[0] == '.' {
				return fs.SkipDir
			}
			return nil
		}
		switch path.Ext(p) {
		case ".go", ".s", ".md":
		default:
			return nil
		}
		src, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		passages, err := Passages(p, src)
		for _, passage := range passages {
			visit(passage)
		}
		return err
	})
}
