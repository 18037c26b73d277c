package frame

import (
	"fmt"
	"strconv"
	"strings"
)

// Template is a user's description of frames: the layers from the outermost to the innermost, each with the fields that
// differ from their defaults.
type Template struct {
	Layers []Layer
}

// Layer is one layer of a template.
type Layer struct {
	Kind   string // "eth", "ip", "udp", ...
	Fields []Setting
}

// Setting assigns a pattern to a field: see pattern.go.
type Setting struct{ Name, Pattern string }

// MaxLayers is the largest number of layers in a template.
const MaxLayers = 16

// maxText is the largest length of a template's text in bytes.
const maxText = 1 << 20

// Parse parses the text form: layers separated by semicolons or line ends. Each layer is the name of its kind,
// followed by settings FIELD=PATTERN. A pattern with spaces is enclosed in double quotes. A line that starts with
// "#" is a comment. Parse does not check fields and patterns; Compile does.
func Parse(text string) (*Template, error) {
	if len(text) > maxText {
		return nil, &Error{Field: "template", Wrong: fmt.Sprintf("it is longer than %d bytes", maxText)}
	}
	t := &Template{}
	for text != "" {
		var words []string
		var err error
		if words, text, err = nextLayer(text); err != nil {
			return nil, err
		}
		if len(words) == 0 {
			continue
		}
		l := Layer{Kind: words[0]}
		if !isName(l.Kind) {
			return nil, &Error{Field: "template", Wrong: fmt.Sprintf("%q is not the name of a layer", l.Kind), Allowed: strings.Join(Kinds(), ", ")}
		}
		for _, w := range words[1:] {
			name, pattern, ok := strings.Cut(w, "=")
			if !ok || !isName(name) {
				return nil, &Error{Field: l.Kind, Wrong: fmt.Sprintf("%q is not a setting", w), Allowed: "FIELD=PATTERN"}
			}
			l.Fields = append(l.Fields, Setting{name, pattern})
		}
		if t.Layers = append(t.Layers, l); len(t.Layers) > MaxLayers {
			return nil, &Error{Field: "template", Wrong: fmt.Sprintf("there are more than %d layers", MaxLayers)}
		}
	}
	return t, nil
}

// isName reports whether s consists of lower-case letters and digits.
func isName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// nextLayer returns the words of the first layer in text, and the rest of text after that layer.
func nextLayer(text string) (words []string, rest string, err error) {
	word, inWord := "", false
	end := func() {
		if inWord {
			words = append(words, word)
		}
		word, inWord = "", false
	}
	for text != "" {
		switch c := text[0]; {
		case c == ';' || c == '\n':
			end()
			return words, text[1:], nil
		case c == ' ' || c == '\t' || c == '\r':
			end()
			text = text[1:]
		case c == '#' && !inWord && len(words) == 0:
			_, rest, _ := strings.Cut(text, "\n")
			return nil, rest, nil
		case c == '"':
			quoted, err := strconv.QuotedPrefix(text)
			if err != nil {
				return nil, "", &Error{Field: "template", Wrong: "a quotation has no end"}
			}
			s, _ := strconv.Unquote(quoted)
			word, inWord, text = word+s, true, text[len(quoted):]
		default:
			word, inWord, text = word+text[:1], true, text[1:]
		}
	}
	end()
	return words, "", nil
}

// String returns the text form of the template, which Parse accepts.
func (t *Template) String() string {
	var b strings.Builder
	for i, l := range t.Layers {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(l.Kind)
		for _, s := range l.Fields {
			pattern := s.Pattern
			if pattern == "" || strings.ContainsAny(pattern, " \t\r\n;\"\\") {
				pattern = strconv.Quote(pattern)
			}
			b.WriteString(" " + s.Name + "=" + pattern)
		}
	}
	return b.String()
}

// Clone returns a deep copy.
func (t *Template) Clone() *Template {
	c := &Template{Layers: append([]Layer(nil), t.Layers...)}
	for i := range c.Layers {
		c.Layers[i].Fields = append([]Setting(nil), c.Layers[i].Fields...)
	}
	return c
}

// Set sets the pattern of a field. name is LAYER.FIELD. If a kind of layer occurs more than once, LAYER is the
// first and LAYER[2] the second.
func (t *Template) Set(name, pattern string) error {
	l, field, err := t.find(name)
	if err != nil {
		return err
	}
	if k, ok := kindOf(l.Kind, func(f string) bool { return f == field || l.has(f) }); ok && l.Kind != payloadKind {
		if _, ok := k.field(field); !ok {
			return unknownField(name, k)
		}
	}
	for i := range l.Fields {
		if l.Fields[i].Name == field {
			l.Fields[i].Pattern = pattern
			return nil
		}
	}
	l.Fields = append(l.Fields, Setting{field, pattern})
	return nil
}

// Get returns the pattern given for a field. It returns "" if the field has its default or a computed value.
func (t *Template) Get(name string) string {
	if l, field, err := t.find(name); err == nil {
		for _, s := range l.Fields {
			if s.Name == field {
				return s.Pattern
			}
		}
	}
	return ""
}

// Has reports whether there is a layer of the given kind.
func (t *Template) Has(kind string) bool {
	for i := range t.Layers {
		if t.Layers[i].Kind == kind {
			return true
		}
	}
	return false
}

// find returns the layer and the field name for LAYER.FIELD or LAYER[N].FIELD. It does not check the field name.
func (t *Template) find(name string) (*Layer, string, error) {
	layer, field, ok := strings.Cut(name, ".")
	which := 1
	if kind, index, indexed := strings.Cut(layer, "["); indexed {
		n, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
		ok = ok && err == nil && strings.HasSuffix(index, "]") && n > 0
		layer, which = kind, n
	}
	if !ok {
		return nil, "", &Error{Field: name, Wrong: "it names no field", Allowed: "LAYER.FIELD such as ip.src, or vlan[2].id"}
	}
	for i := range t.Layers {
		if t.Layers[i].Kind == layer {
			if which--; which == 0 {
				return &t.Layers[i], field, nil
			}
		}
	}
	var present []string
	for i := range t.Layers {
		l := &t.Layers[i]
		if _, ok := kindOf(l.Kind, l.has); !ok && l.Kind != payloadKind {
			return nil, "", unknownLayer(l.Kind)
		}
		present = append(present, l.Kind)
	}
	return nil, "", &Error{Field: name, Wrong: "the template has no such layer", Allowed: "a field of " + strings.Join(present, ", ")}
}

func (l *Layer) has(field string) bool {
	for _, s := range l.Fields {
		if s.Name == field {
			return true
		}
	}
	return false
}

func unknownLayer(name string) error {
	return &Error{Field: name, Wrong: "there is no such layer", Allowed: strings.Join(Kinds(), ", ")}
}

func unknownField(name string, k *kind) error {
	var known []string
	for _, f := range k.fields {
		known = append(known, f.name)
	}
	if k.name == "gre" {
		known = []string{"type", "checksum", "key", "seq"}
	}
	return &Error{Field: name, Wrong: "there is no such field in " + k.summary, Allowed: strings.Join(known, ", ")}
}
