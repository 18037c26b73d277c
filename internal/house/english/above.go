package english

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// goSource is a parsed Go file with its text.
type goSource struct {
	fset *token.FileSet
	tree *ast.File
	text string
}

// line returns the number of the line that contains pos.
func (s goSource) line(pos token.Pos) int { return s.fset.Position(pos).Line }

// slice returns the source text from one position up to another.
func (s goSource) slice(from, to token.Pos) string {
	return s.text[s.fset.Position(from).Offset:s.fset.Position(to).Offset]
}

// lineFrom returns the source text from pos to the end of its line.
func (s goSource) lineFrom(pos token.Pos) string {
	line, _, _ := strings.Cut(s.text[s.fset.Position(pos).Offset:], "\n")
	return line
}

// above returns the doc comment and the head of each declaration that encloses a comment, as source text.
// It leaves out a head on the line of the comment, which Passage.Code contains.
func (s goSource) above(comment *ast.CommentGroup) string {
	var parts []string
	add := func(doc *ast.CommentGroup, head string, end token.Pos) {
		if doc != nil {
			parts = append(parts, s.slice(doc.Pos(), doc.End()))
		}
		if s.line(end) < s.line(comment.Pos()) {
			parts = append(parts, head)
		}
	}
	for _, decl := range s.tree.Decls {
		if !s.encloses(decl, comment) {
			continue
		}
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Body == nil {
				add(decl.Doc, s.slice(decl.Pos(), decl.End()), decl.End())
			} else {
				add(decl.Doc, s.slice(decl.Pos(), decl.Body.Lbrace+1), decl.Body.Lbrace)
			}
		case *ast.GenDecl:
			add(decl.Doc, s.lineFrom(decl.Pos()), decl.Pos())
			for _, spec := range decl.Specs {
				if decl.Lparen.IsValid() && s.encloses(spec, comment) {
					add(specDoc(spec), s.lineFrom(spec.Pos()), spec.Pos())
				}
			}
		}
	}
	return strings.Join(parts, "\n")
}

// encloses reports whether a comment is inside a node, or follows it on its last line.
func (s goSource) encloses(n ast.Node, comment *ast.CommentGroup) bool {
	return n.Pos() <= comment.Pos() && s.line(comment.Pos()) <= s.line(n.End())
}

// specDoc returns the doc comment of one specification of a group, or nil.
func specDoc(spec ast.Spec) *ast.CommentGroup {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return spec.Doc
	case *ast.ValueSpec:
		return spec.Doc
	}
	return nil
}

var heading = regexp.MustCompile(`^(#+) `)

// outline is the position of a line in a Markdown document.
type outline struct {
	headings []string // the headings that enclose the line, the outermost first
	header   string   // first row of the table that the line belongs to
}

// read updates the outline with a line that is not part of a block of code.
func (o *outline) read(line string) {
	if m := heading.FindStringSubmatch(line); m != nil {
		depth := 0
		for depth < len(o.headings) && len(heading.FindStringSubmatch(o.headings[depth])[1]) < len(m[1]) {
			depth++
		}
		o.headings = append(o.headings[:depth:depth], line)
	}
	if !strings.HasPrefix(line, "|") {
		o.header = ""
	}
}

// above returns the path of headings, and the first row of the table.
func (o *outline) above() string {
	parts := []string{strings.Join(o.headings, " > "), o.header}
	return strings.Trim(strings.Join(parts, "\n"), "\n")
}
