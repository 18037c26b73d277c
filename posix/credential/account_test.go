package credential

import (
	"fmt"
	"testing"
)

// A user is found by its name or number in the files of the root folder. A number needs no entry; a group replaces the groups of
// the user.
func TestFind(t *testing.T) {
	files := map[string]string{
		"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:www:/var/www:/bin/false\nbroken\n",
		"/etc/group":  "root:x:0:\nadm:x:4:www-data,syslog\nwww-data:x:33:\nssl:x:110:root,www-data\n",
	}
	for text, want := range map[string]string{
		"":             "0 0 []  <nil>",
		"root":         "0 0 [110] /root <nil>",
		"www-data":     "33 33 [4 110] /var/www <nil>",
		"33":           "33 33 [4 110] /var/www <nil>",
		"33:0":         "33 0 [] /var/www <nil>",
		"www-data:adm": "33 4 [] /var/www <nil>",
		"1000":         "1000 0 [] / <nil>",
		"1000:1000":    "1000 1000 [] / <nil>",
		"nobody":       "0 0 []  " + errNoUser.Error(),
		"www-data:x":   "0 0 []  " + errNoGroup.Error(),
	} {
		a, err := Find(text, func(path string) string { return files[path] })
		c := a.Set
		if got := fmt.Sprint(c.UID, " ", c.GID, " ", c.Groups, " ", a.Home, " ", err); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// A program gets the home folder of its user, unless its environment already has another one.
func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		home string
		env  []string
		want string
	}{
		{"/var/www", []string{"A=1"}, "[A=1 HOME=/var/www]"},
		{"/var/www", []string{"HOME=/srv"}, "[HOME=/srv]"},
		{"", []string{"A=1"}, "[A=1]"},
	} {
		a := Account{Home: c.home}
		if got := fmt.Sprint(a.Environment(c.env)); got != c.want {
			t.Errorf("home %q: %s, want %s", c.home, got, c.want)
		}
	}
}
