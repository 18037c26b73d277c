package fstest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/acl"
)

// machine runs a script.
type machine struct {
	*testing.T
	view  *fs.View
	files map[string]*fs.File // open files, by the name given in open
	where string              // the current line, for messages
}

func (m *machine) fail(format string, args ...any) {
	m.Helper()
	m.Fatalf("%s: %s", m.where, fmt.Sprintf(format, args...))
}

// run executes a script, and fails the test at the first unexpected result.
func (m *machine) run(script string) {
	m.Helper()
	for i, line := range strings.Split(script, "\n") {
		line, _, _ = strings.Cut(line, "#")
		call, want, _ := strings.Cut(line, "->")
		words := strings.Fields(call)
		if len(words) == 0 {
			continue
		}
		m.where = fmt.Sprintf("line %d: %s", i+1, strings.TrimSpace(line))
		c, ok := commands[words[0]]
		if !ok || len(words)-1 < c.args {
			m.fail("no such command, or too few words")
		}
		for j, word := range words {
			if length, ok := strings.CutPrefix(word, "@"); ok {
				words[j] = strings.Repeat("n", int(m.number(length, 0)))
			}
		}
		err := c.do(m, append(words[1:], make([]string, 4)...))
		if got := errnoName(err); got != strings.TrimSpace(want) {
			m.fail("error %q", got)
		}
	}
}

// errnos are the errors that scripts can name.
var errnos = map[string]linux.Errno{
	"EACCES": linux.EACCES, "EBADF": linux.EBADF, "EBUSY": linux.EBUSY, "EEXIST": linux.EEXIST,
	"EFBIG": linux.EFBIG, "EINVAL": linux.EINVAL, "EISDIR": linux.EISDIR, "ELOOP": linux.ELOOP,
	"ENAMETOOLONG": linux.ENAMETOOLONG, "ENOENT": linux.ENOENT, "ENOSPC": linux.ENOSPC,
	"ENOTDIR": linux.ENOTDIR, "ENOTEMPTY": linux.ENOTEMPTY, "ENXIO": linux.ENXIO, "EPERM": linux.EPERM,
	"ENODATA": linux.ENODATA, "EROFS": linux.EROFS, "ESPIPE": linux.ESPIPE, "EXDEV": linux.EXDEV, "EOPNOTSUPP": linux.EOPNOTSUPP,
}

func errnoName(err error) string {
	if err == nil {
		return ""
	}
	for name, errno := range errnos {
		if err == error(errno) {
			return name
		}
	}
	return err.Error()
}

// command is a command of the script language.
type command struct {
	args int                                // minimum number of arguments
	do   func(m *machine, w []string) error // w holds the arguments, followed by empty strings
}

// commands is set in init, because run refers to it.
var commands map[string]command

func init() {
	commands = map[string]command{
		"mkdir": {1, func(m *machine, w []string) error { return m.view.Mkdir(m.view.Dir, w[0], m.mode(w[1], 0o755)) }},
		"mknod": {2, func(m *machine, w []string) error {
			return m.view.Mknod(m.view.Dir, w[0], m.mode(w[1], 0), fs.DeviceOf(uint64(m.number(w[2], 0))))
		}},
		"symlink":     {2, func(m *machine, w []string) error { return m.view.Symlink(w[0], m.view.Dir, w[1]) }},
		"readlink":    {2, (*machine).readlink},
		"link":        {2, (*machine).link},
		"rm":          {1, func(m *machine, w []string) error { return m.view.Unlink(m.view.Dir, w[0]) }},
		"rmdir":       {1, func(m *machine, w []string) error { return m.view.Rmdir(m.view.Dir, w[0]) }},
		"mv":          {2, func(m *machine, w []string) error { return m.rename(w, 0) }},
		"mvnew":       {2, func(m *machine, w []string) error { return m.rename(w, fs.RenameNoReplace) }},
		"exchange":    {2, func(m *machine, w []string) error { return m.rename(w, fs.RenameExchange) }},
		"whiteout":    {2, func(m *machine, w []string) error { return m.rename(w, fs.RenameWhiteout) }},
		"whiteoutnew": {2, func(m *machine, w []string) error { return m.rename(w, fs.RenameWhiteout|fs.RenameNoReplace) }},
		"write":       {2, func(m *machine, w []string) error { return m.put(w, fs.Truncate) }},
		"append":      {2, func(m *machine, w []string) error { return m.put(w, fs.Append) }},
		"read":        {1, (*machine).get},
		"ls":          {1, (*machine).list},
		"stat":        {2, func(m *machine, w []string) error { return m.stat(w, true) }},
		"lstat":       {2, func(m *machine, w []string) error { return m.stat(w, false) }},
		"chmod": {2, func(m *machine, w []string) error {
			return m.change(w[0], fs.Change{Fields: fs.SetMode, Mode: m.mode(w[1], 0)})
		}},
		"chown": {2, (*machine).chown},
		"truncate": {2, func(m *machine, w []string) error {
			return m.change(w[0], fs.Change{Fields: fs.SetSize, Size: m.number(w[1], 0)})
		}},
		"access": {2, (*machine).access},
		"cd":     {1, (*machine).chdir},
		"pwd":    {1, (*machine).pwd},
		"chroot": {1, (*machine).chroot},
		"as":     {1, (*machine).as},
		"umask":  {1, func(m *machine, w []string) error { m.view.Umask = m.mode(w[0], 0); return nil }},
		"open":   {3, (*machine).open},
		"close":  {1, (*machine).close},
		"fwrite": {2, func(m *machine, w []string) error { _, err := m.files[w[0]].Write([]byte(w[1])); return err }},
		"fread":  {2, (*machine).fread},
		"fseek":  {2, (*machine).fseek},
		"setx":   {3, (*machine).setXattr},
		"getx":   {3, (*machine).getXattr},
		"lsx":    {1, (*machine).listXattrs},
		"rmx":    {2, (*machine).removeXattr},
		"setacl": {2, func(m *machine, w []string) error { return m.setList(w, acl.Access) }},
		"getacl": {2, func(m *machine, w []string) error { return m.getList(w, acl.Access) }},
		"rmacl":  {1, func(m *machine, w []string) error { return m.removeXattr([]string{w[0], acl.Access}) }},

		"setdefault": {2, func(m *machine, w []string) error { return m.setList(w, acl.Default) }},
		"getdefault": {2, func(m *machine, w []string) error { return m.getList(w, acl.Default) }},
		"rmdefault":  {1, func(m *machine, w []string) error { return m.removeXattr([]string{w[0], acl.Default}) }},

		"flink": {2, func(m *machine, w []string) error { return m.view.Link(m.files[w[0]].Place(), m.view.Dir, w[1]) }},
		"fcut":  {2, func(m *machine, w []string) error { return m.files[w[0]].Truncate(m.number(w[1], 0)) }},
	}
}

func (m *machine) number(word string, otherwise int64) int64 {
	if word == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(word, 0, 64)
	if err != nil {
		m.fail("%v", err)
	}
	return n
}

func (m *machine) mode(word string, otherwise fs.Mode) fs.Mode {
	return fs.Mode(m.number(word, int64(otherwise)))
}

func (m *machine) lookup(path string) (fs.Place, error) { return m.view.Lookup(m.view.Dir, path, true) }

// text returns a word of a script as content; "-" means no content.
func text(b string) string {
	if b == "-" {
		return ""
	}
	return b
}

func (m *machine) readlink(w []string) error {
	got, err := m.view.Readlink(m.view.Dir, w[0])
	if err == nil && got != w[1] {
		m.fail("got %q", got)
	}
	return err
}

func (m *machine) link(w []string) error {
	p, err := m.view.Lookup(m.view.Dir, w[0], false)
	if err != nil {
		return err
	}
	return m.view.Link(p, m.view.Dir, w[1])
}

func (m *machine) rename(w []string, flags fs.RenameFlags) error {
	return m.view.Rename(m.view.Dir, w[0], m.view.Dir, w[1], flags)
}

func (m *machine) put(w []string, flags fs.Flags) error {
	f, err := m.view.Open(m.view.Dir, w[0], fs.WriteOnly|fs.Create|flags, m.mode(w[2], 0o644))
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text(w[1])))
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
