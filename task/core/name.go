package core

import (
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// The name of a core dump (core(5)).

// Settings are the settings of the system for core dumps.
type Settings struct {
	UsesPID atomic.Int64 // kernel.core_uses_pid
	pattern atomic.Pointer[string]
}

// Pattern returns kernel.core_pattern, and SetPattern changes it.
func (s *Settings) Pattern() string {
	if p := s.pattern.Load(); p != nil {
		return *p
	}
	return "core"
}

func (s *Settings) SetPattern(text string) { s.pattern.Store(&text) }

// name returns the path of the file, from the pattern. host is the name of the machine.
func (d *Dump) name(s *Settings, host string) string {
	pattern, pid := s.Pattern(), strconv.Itoa(int(d.PID))
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] != '%':
			b.WriteByte(pattern[i])
		case i+1 < len(pattern):
			i++
			b.WriteString(d.field(pattern[i], host))
		}
	}
	if s.UsesPID.Load() != 0 && !strings.Contains(strings.ReplaceAll(pattern, "%%", ""), "%p") {
		b.WriteString("." + pid)
	}
	return b.String()
}

// field returns the text for a letter of the pattern. An unknown letter has no text.
func (d *Dump) field(letter byte, host string) string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	switch letter {
	case '%':
		return "%"
	case 'p', 'P':
		return number(int64(d.PID))
	case 'i', 'I':
		return number(int64(d.Threads[0].ID))
	case 'u':
		return number(int64(d.UID))
	case 'g':
		return number(int64(d.GID))
	case 'd': // a process that is not dumpable has no core dump
		return "1"
	case 's':
		return number(int64(d.Signal.Signal))
	case 't':
		return number(time.Now().Unix())
	case 'h':
		return component(host)
	case 'e':
		return component(d.Name)
	case 'f':
		return component(path.Base(d.Program))
	case 'E':
		return component(d.Program)
	case 'c':
		return strconv.FormatUint(d.Limit, 10)
	}
	return ""
}

// component returns a text that cannot change the directory of the file.
func component(text string) string {
	switch text {
	case "", ".":
		return "!"
	case "..":
		return "!."
	}
	return strings.ReplaceAll(text, "/", "!")
}
