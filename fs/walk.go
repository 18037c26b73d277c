package fs

import (
	"strings"
	"syscall"
)

// From a path to a file: path_resolution(7). A walk ends in a target, which
// serves those who want the file as well as those who want to make or remove
// the last name.

// Bounds of paths, as on Linux.
const (
	MaxPath  = 4096 // bytes, with the NUL that C has at the end (PATH_MAX)
	maxLinks = 40   // symbolic links followed in one walk
)

// View is how one process sees the tree. Its fields may be changed between
// calls (chdir, chroot, setuid, umask), not during one.
type View struct {
	Tree  *Tree
	Root  Place
	Dir   Place // the working directory
	Who   Credentials
	Umask Mode

	bounds Resolve // of one walk: see Within
}

// NewView is the view of user 0, at the root.
func NewView(t *Tree) *View {
	return &View{Tree: t, Root: t.Root(), Dir: t.Root(), Umask: 0o022}
}

// lastName says how a path ended.
type lastName uint8

const (
	named  lastName = iota // in a name
	dot                    // in "."
	dotDot                 // in ".."
	root                   // it was "/"
)

// target is where a walk ended.
type target struct {
	dir   Place // holds the last name; the file itself where there is no last name
	last  lastName
	name  string
	place Place // the file; nowhere when there is none of that name
	slash bool  // a slash came after the last name: it has to be a directory
}

func (t *target) exists() bool { return t.place.Node != nil }

// found is the place of a target that has to be there.
func (t *target) found() (Place, error) {
	switch {
	case !t.exists():
		return Place{}, syscall.ENOENT
	case t.slash && t.place.Node.Attr().Mode.Type() != Dir:
		return Place{}, syscall.ENOTDIR
	}
	return t.place, nil
}

// following says what becomes of a symbolic link in the last place.
type following uint8

const (
	never   following = iota // it is made, removed or renamed itself
	atSlash                  // it is followed when a slash comes after it (lstat)
	always                   // (stat)
)

// walk resolves path from at, which a path that begins with a slash leaves
// aside. That the last name does not exist is no error.
func (v *View) walk(at Place, path string, follow following) (target, error) {
	switch {
	case path == "":
		return target{}, syscall.ENOENT
	case len(path) >= MaxPath:
		return target{}, syscall.ENAMETOOLONG
	}
	w := walker{View: v, dir: at}
	if path[0] == '/' {
		if err := w.mayStart(); err != nil {
			return target{}, err
		}
	}
	w.start(path)
	for {
		t, done, err := w.step(follow)
		if done || err != nil {
			return t, err
		}
	}
}

// walker is a walk under way: rest of the path from dir.
type walker struct {
	*View
	dir   Place
	rest  string
	last  lastName // of what has been walked
	links int
}

// start sets out along path, from the root if it says so.
func (w *walker) start(path string) {
	w.rest = path
	if path[0] == '/' {
		w.dir, w.last = w.Root, root
	}
}

// next takes the next name off the path. slash tells that slashes came after
// it, and last that nothing else did.
func (w *walker) next() (name string, slash, last bool) {
	path := strings.TrimLeft(w.rest, "/")
	name, rest, slash := strings.Cut(path, "/")
	w.rest = strings.TrimLeft(rest, "/")
	return name, slash, w.rest == ""
}

// step walks along one name.
func (w *walker) step(follow following) (t target, done bool, err error) {
	name, slash, last := w.next()
	switch {
	case name == "":
		return target{dir: w.dir, last: w.last, place: w.dir}, true, nil
	case len(name) > MaxName:
		return t, true, syscall.ENAMETOOLONG
	}
	dir, err := w.dir.directory()
	if err != nil {
		return t, true, err
	}
	if !w.Who.May(dir.Attr(), ToExecute) {
		return t, true, syscall.EACCES
	}
	switch name {
	case ".":
		w.last = dot
		return t, false, nil
	case "..":
		w.last = dotDot
		w.dir, err = w.up()
		return t, err != nil, err
	}
	node, err := dir.Lookup(name)
	if err == syscall.ENOENT && last {
		return target{dir: w.dir, name: name, slash: slash}, true, nil
	}
	if err != nil {
		return t, true, err
	}
	if link, ok := node.(Link); ok && (!last || follow == always || follow == atSlash && slash) {
		return t, false, w.follow(link, slash)
	}
	place := w.Tree.cross(Place{w.dir.mount, node})
	if err := w.mayCross(place); err != nil {
		return t, true, err
	}
	if last {
		return target{dir: w.dir, name: name, place: place, slash: slash}, true, nil
	}
	w.dir, w.last = place, named
	return t, false, nil
}

// follow puts what a symbolic link says in front of the rest of the path.
func (w *walker) follow(link Link, slash bool) error {
	w.links++
	if w.links > maxLinks {
		return syscall.ELOOP
	}
	path, err := link.Target()
	switch {
	case err != nil:
		return err
	case path == "":
		return syscall.ENOENT
	}
	if err := w.mayFollow(path); err != nil {
		return err
	}
	if slash {
		path += "/"
	}
	path += w.rest
	if len(path) >= MaxPath {
		return syscall.ENAMETOOLONG
	}
	w.last = named
	w.start(path)
	return nil
}

// Lookup finds the file that a path leads to. follow says whether a symbolic
// link in the last place is followed (stat) or is what is wanted (lstat).
func (v *View) Lookup(at Place, path string, follow bool) (Place, error) {
	how := atSlash
	if follow {
		how = always
	}
	t, err := v.walk(at, path, how)
	if err != nil {
		return Place{}, err
	}
	return t.found()
}

// LookupDir finds a directory through which v may walk: chdir(2), chroot(2).
func (v *View) LookupDir(at Place, path string) (Place, error) {
	p, err := v.Lookup(at, path, true)
	if err != nil {
		return Place{}, err
	}
	if _, err := p.directory(); err != nil {
		return Place{}, err
	}
	if !v.Who.May(p.Node.Attr(), ToExecute) {
		return Place{}, syscall.EACCES
	}
	return p, nil
}

// Path is the absolute path of a directory as v sees it (getcwd(2)).
// Errors: ENOENT when it has been removed or cannot be reached from v's root.
func (v *View) Path(p Place) (string, error) {
	path := ""
	for p != v.Root {
		up := v.Tree.parent(p)
		if up == p {
			return "", syscall.ENOENT
		}
		name, ok := v.nameIn(up, p)
		if !ok {
			return "", syscall.ENOENT
		}
		path = "/" + name + path
		p = up
	}
	if path == "" {
		return "/", nil
	}
	return path, nil
}

// nameIn is the name that the directory p has in up, the one above it.
func (v *View) nameIn(up, p Place) (string, bool) {
	for p.mount != up.mount {
		p = p.mount.at
	}
	dir, err := up.directory()
	if err != nil {
		return "", false
	}
	child, ok := p.Node.(Directory)
	if !ok {
		return "", false
	}
	return dir.NameOf(child)
}
