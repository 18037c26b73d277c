package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// block is a fenced block of a document.
type block struct {
	line   int // line of the opening fence
	kind   string
	file   string // name of the file, if kind is "file"
	text   string
	reason string // why the block is not run, from the comment above it
	after  bool   // a heading precedes the block, so running servers end first
}

// Kinds of code blocks in a document.
const (
	commands = "console"
	server   = "server"
	file     = "file"
	text     = "text"
	other    = "other"
)

var (
	notRun   = regexp.MustCompile(`^<!-- not run: (\S.*) -->$`)
	fileMark = regexp.MustCompile(`\bfile=(\S+)`)
)

// parse returns the fenced blocks of a document.
func parse(document string) (all []block) {
	var b *block
	heading, reason := false, ""
	for i, line := range strings.Split(document, "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case b != nil && fence:
			all = append(all, *b)
			b, heading, reason = nil, false, ""
		case b != nil:
			b.text += line + "\n"
		case fence:
			b = &block{line: i + 1, kind: kindOf(info), reason: reason, after: heading}
			if m := fileMark.FindStringSubmatch(info); m != nil {
				b.file = m[1]
			}
		case strings.HasPrefix(line, "#"):
			heading = true
		case line != "":
			reason = ""
			if m := notRun.FindStringSubmatch(line); m != nil {
				reason = m[1]
			}
		}
	}
	return all
}

func kindOf(info string) string {
	switch {
	case fileMark.MatchString(info):
		return file
	case info == "console":
		return commands
	case info == "console server":
		return server
	case info == "text":
		return text
	}
	return other
}

// command is a command of a block and the lines that its output must contain.
type command struct {
	line int
	text string
	want []string
}

// parseCommands splits the text of a console block. first is the line number of the block's first line.
func parseCommands(first int, text string) (all []command, err error) {
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		last := len(all) - 1
		switch {
		case strings.HasPrefix(line, "$ "):
			all = append(all, command{line: first + i, text: line[2:]})
		case last < 0:
			return nil, fmt.Errorf("line %d: want a command, which begins with $", first+i)
		case strings.HasSuffix(all[last].text, `\`):
			all[last].text += "\n" + line
		case strings.TrimSpace(line) != "":
			all[last].want = append(all[last].want, strings.TrimSpace(line))
		}
	}
	return all, nil
}

// missing returns the first expected line that the output does not contain in its place, or "".
func missing(want []string, output string) string {
	lines := strings.Split(output, "\n")
	for _, w := range want {
		i := 0
		for i < len(lines) && !contains(lines[i], w) {
			i++
		}
		if i == len(lines) {
			return w
		}
		lines = lines[i+1:]
	}
	return ""
}

// contains reports whether line contains the parts of pattern between "…", in order.
func contains(line, pattern string) bool {
	for part := range strings.SplitSeq(pattern, "…") {
		at := strings.Index(line, strings.TrimSpace(part))
		if at < 0 {
			return false
		}
		line = line[at+len(strings.TrimSpace(part)):]
	}
	return true
}
