package credential

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Account is a user that a program runs as.
type Account struct {
	Set
	Home string // home directory; empty if Find had no text
}

// errNoUser and errNoGroup are returned by Find.
var (
	errNoUser  = errors.New("/etc/passwd has no such user: use a number")
	errNoGroup = errors.New("/etc/group has no such group: use a number")
)

// Find finds the account for USER[:GROUP], by the files /etc/passwd and /etc/group (passwd(5), group(5)). If no group
// is given, the account has the group of the user and the supplementary groups of the user. A user or group that is
// given as a number needs no entry in the files. The empty string means root.
func Find(text string, read func(path string) string) (Account, error) {
	name, group, named := strings.Cut(text, ":")
	if name == "" {
		name = "0"
	}
	uid, gid, home := -1, 0, "/" // a user without an entry has the home folder that docker run gives it
	if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		uid = int(n)
	}
	for f := range entries(read("/etc/passwd"), 7) {
		if f[0] == name || uid >= 0 && f[2] == strconv.Itoa(uid) {
			uid, gid, home, name = number(f[2]), number(f[3]), f[5], f[0]
			break
		}
	}
	if uid < 0 {
		return Account{}, errNoUser
	}
	var groups []uint32
	if named {
		gid = -1
		if n, err := strconv.ParseUint(group, 10, 31); err == nil {
			gid = int(n)
		}
	}
	for f := range entries(read("/etc/group"), 4) {
		switch {
		case named && f[0] == group:
			gid = number(f[2])
		case !named && slices.Contains(strings.Split(f[3], ","), name):
			groups = append(groups, uint32(number(f[2])))
		}
	}
	if gid < 0 {
		return Account{}, errNoGroup
	}
	if text == "" {
		return Account{Set: New(0, 0)}, nil
	}
	return Account{New(uint32(uid), uint32(gid), groups...), home}, nil
}

func number(s string) int {
	n, _ := strconv.ParseUint(s, 10, 31)
	return int(n)
}

// entries yields the lines of a file that have the given number of fields. Colons
// separate the fields.
func entries(text string, fields int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(text) {
			f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
			if len(f) == fields && !yield(f) {
				return
			}
		}
	}
}

// Environment returns an environment with the variable HOME. If env has none, it is the home folder of the account.
func (a *Account) Environment(env []string) []string {
	if a.Home == "" || slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "HOME=") }) {
		return env
	}
	return append(slices.Clip(env), "HOME="+a.Home)
}
