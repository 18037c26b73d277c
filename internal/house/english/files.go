package english

import (
	"regexp"
	"strings"
)

var fileName = regexp.MustCompile(`[\w.*/-]*\w\.(?:go|s|md|sh|svg|txt)\b`)

// FileNames returns the names of source files and documents that p mentions. Patterns, addresses of web
// pages, placeholders in capitals and files of others ("QEMU's docs/qmp.txt") are left out.
func FileNames(p Passage) (names []string) {
	for _, at := range fileName.FindAllStringIndex(p.Text, -1) {
		name := strings.TrimPrefix(p.Text[at[0]:at[1]], "./")
		before := p.Text[:at[0]]
		switch {
		case strings.ContainsRune(name, '*') || strings.HasPrefix(name, "/") || strings.Contains(name, "//"):
		case strings.HasSuffix(before, ":") || strings.HasSuffix(before, "$") || strings.HasSuffix(before, "{") ||
			strings.HasSuffix(before, "'s "):
		case placeholder.MatchString(name) || strings.HasPrefix(p.Text[at[1]:], "("):
		default:
			names = append(names, name)
		}
	}
	return names
}

var placeholder = regexp.MustCompile(`(^|[/_])[A-Z]{3,}[._/]`)
