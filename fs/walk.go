package fs

import (
	"strings"

	"loam/abi/linux"
)

// Path resolution (path_resolution(7)). A walk ends in a target. The target serves callers that need
// the file, and callers that create or remove its last name.

// Limits of paths, as on Linux.
const (
	MaxPath  = 4096 // bytes, including the terminating NUL of C (PATH_MAX)
	maxLinks = 40   // maximum number of symbolic links followed in one walk
)

// View is the tree as one process sees it. Its fields may be changed between calls (chdir, chroot,
// setuid, umask), but not during a call.
type View struct {
	Tree  *Tree
	Root  Place
	Dir   Place // the working directory
	Who   Credentials
	Umask Mode
	// Caller is the thread that uses the view.
	Caller Caller

	bounds Resolve // restrictions of the walk in progress: see Within
}

// NewView returns a view of user 0 whose working directory is the root.
func NewView(t *Tree) *View {
	return &View{Tree: t, Root: t.Root(), Dir: t.Root(), Umask: 0o022}
}

// lastName classifies the end of a path.
type lastName uint8

const (
	named  lastName = iota // a name
	dot                    // "."
	dotDot                 // ".."
	root                   // "/"
)

// target is the result of a walk.
type target struct {
	dir   Place // contains the last name; without a last name, the file itself
	last  lastName
	name  string
	place Place // the file; zero if the last name does not exist
	slash bool  // a slash follows the last name: it must be a directory
	magic Link  // the last name is this magic link, which leads to place; otherwise nil
}

func (t *target) exists() bool { return t.place.Node != nil }

// found returns the place of a target. Errors: ENOENT, ENOTDIR.
func (t *target) found() (Place, error) {
	switch {
	case !t.exists():
		return Place{}, linux.ENOENT
	case t.slash && t.place.Node.Attr().Mode.Type() != Dir:
		return Place{}, linux.ENOTDIR
	}
	return t.place, nil
}

// following says whether to follow a symbolic link in the last component.
type following uint8

const (
	never   following = iota // no: the operation concerns the link itself (create, remove, rename)
	atSlash                  // only if a slash follows the name of the link (lstat)
	always                   // yes (stat)
)

// walk resolves path. A relative path starts at a directory (the parameter at). It is no
// error if the last name does not exist.
func (v *View) walk(at Place, path string, follow following) (target, error) {
	w := walker{View: v, target: target{dir: at}}
	err := w.resolve(path, follow)
	return w.target, err
}

// resolve resolves a path, relative to the directory of the target.
func (w *walker) resolve(path string, follow following) error {
	if err := w.begin(path); err != nil {
		return err
	}
	return w.run(follow)
}

// begin checks a path and begins to resolve it.
func (w *walker) begin(path string) error {
	switch {
	case path == "":
		return linux.ENOENT
	case len(path) >= MaxPath:
		return linux.ENAMETOOLONG
	}
	if path[0] == '/' {
		if err := w.mayStart(); err != nil {
			return err
		}
	}
	w.start(path)
	return nil
}

// run resolves the rest of the path.
func (w *walker) run(follow following) error {
	for {
		done, err := w.step(follow)
		if done || err != nil {
			return err
		}
	}
}

// walker is a walk in progress: the rest of the path, relative to dir.
type walker struct {
	*View
	// target is the result. Until the walk has ended, dir is the directory reached so far, last classifies the last name of the
	// path to it, and the other fields are zero.
	target
	rest  string // begins with a name, or is empty
	links int
	// glance ends the walk before the last name is looked up, if the file system may know its attributes without a node.
	glance glance
}

// glance is a state of a walk that needs only the attributes of the file.
type glance uint8

const (
	notAsked glance = iota // the caller needs the node
	asked
	stopped  // the walk has ended without a place, because its file system is Glancing
	declined // the file system does not know the attributes; the permission to search the directory has been checked
)

// lookUp resolves the last name of the path, at which the walk has stopped.
func (w *walker) lookUp(follow following) error {
	w.glance, w.rest = declined, w.name
	return w.run(follow)
}

// start begins to resolve path; an absolute path starts at the root.
func (w *walker) start(path string) {
	if path[0] == '/' {
		w.dir, w.last = w.Root, root
	}
	w.rest = afterSlashes(path)
}

// next removes the next name from the path. slash reports whether a slash follows it, and last whether
// nothing but slashes follows.
func (w *walker) next() (name string, slash, last bool) {
	path := w.rest
	end := strings.IndexByte(path, '/')
	if end < 0 {
		w.rest = ""
		return path, false, true
	}
	w.rest = afterSlashes(path[end+1:])
	return path[:end], true, w.rest == ""
}

// afterSlashes removes the slashes at the beginning of a path.
func afterSlashes(path string) string {
	for path != "" && path[0] == '/' {
		path = path[1:]
	}
	return path
}

// step resolves one name.
func (w *walker) step(follow following) (done bool, err error) {
	name, slash, last := w.next()
	if name == "" {
		w.place = w.dir
		return true, nil
	}
	dir, ok := w.dir.Node.(Directory)
	switch {
	case !ok:
		return true, linux.ENOTDIR
	case !w.Who.searchesAll() && w.glance != declined && !w.Who.May(w.dir.guard(dir), ToExecute):
		return true, linux.EACCES
	case len(name) > MaxName:
		return true, linux.ENAMETOOLONG
	}
	switch name {
	case ".":
		w.last = dot
		return false, nil
	case "..":
		w.last = dotDot
		w.dir, err = w.up()
		return err != nil, err
	}
	if w.glance != notAsked && w.glances(last && !slash) {
		w.end(name, slash)
		return true, nil
	}
	node, err := dir.Lookup(name)
	if err != nil {
		if err == linux.ENOENT && last {
			w.end(name, slash)
			err = nil
		}
		return true, err
	}
	if link, ok := node.(Link); ok && (!last || follow == always || follow == atSlash && slash) {
		return w.through(link, name, slash, last)
	}
	return w.reach(Place{w.dir.mount, node}, name, slash, last)
}

// glances reports whether the walk ends before a name is looked up. bare says that the name is the end of the path.
func (w *walker) glances(bare bool) bool {
	switch {
	case w.glance == declined:
		w.glance = notAsked
	case w.glance == asked && bare && w.dir.mount.glance != nil:
		w.glance = stopped
	}
	return w.glance == stopped
}

// end records the last name of the path.
func (w *walker) end(name string, slash bool) { w.last, w.name, w.slash = named, name, slash }

// arrive ends the walk at a place, if the name is the last one, or continues there.
func (w *walker) arrive(p Place, name string, slash, last bool) (done bool) {
	if last {
		w.place = p
		w.end(name, slash)
		return true
	}
	w.dir, w.last = p, named
	return false
}

// reach continues at the file with a name in the current directory, across a mount. Errors: EXDEV.
func (w *walker) reach(p Place, name string, slash, last bool) (done bool, err error) {
	if p.mount.covered.Load() {
		p = w.Tree.cross(p)
		if err := w.mayCross(p); err != nil {
			return true, err
		}
	}
	return w.arrive(p, name, slash, last), nil
}

// through continues at the file to which a symbolic link leads.
func (w *walker) through(link Link, name string, slash, last bool) (done bool, err error) {
	magic, ok := link.(Magic)
	if !ok {
		return false, w.follow(link, slash)
	}
	place, err := w.jump(magic)
	if err != nil {
		return true, err
	}
	if last {
		w.magic = link
	}
	return w.arrive(place, name, slash, last), nil
}

// follow prepends the target of a symbolic link to the rest of the path.
func (w *walker) follow(link Link, slash bool) error {
	w.links++
	if w.links > maxLinks {
		return linux.ELOOP
	}
	path, err := w.TargetOf(link)
	switch {
	case err != nil:
		return err
	case path == "":
		return linux.ENOENT
	}
	if err := w.mayFollow(path); err != nil {
		return err
	}
	if slash {
		path += "/"
	}
	w.last = named
	w.start(path + w.rest) // the sum may be longer than MaxPath
	return nil
}

// Lookup resolves a path. follow says whether a symbolic link in the last component is followed (stat) or
// returned itself (lstat). Errors: ENOENT, ENOTDIR, EACCES, ELOOP, ENAMETOOLONG, EXDEV (see Resolve).
func (v *View) Lookup(at Place, path string, follow bool) (Place, error) {
	t, err := v.walk(at, path, lastLink(follow))
	if err != nil {
		return Place{}, err
	}
	return t.found()
}

// Stat returns the attributes of the file at a path, and the number of its device. The parameter follow and the errors are
// those of Lookup.
func (v *View) Stat(at Place, path string, follow bool) (Attr, Device, error) {
	w := walker{View: v, target: target{dir: at}, glance: asked}
	if err := w.begin(path); err != nil {
		return Attr{}, Device{}, err
	}
	err := w.run(lastLink(follow))
	if w.glance == stopped {
		if dir, ok := w.dir.Node.(Directory); ok {
			if a, ok := w.dir.mount.glance.Glance(dir, w.name); ok {
				return a, w.dir.Device(), nil
			}
		}
		err = w.lookUp(lastLink(follow))
	}
	if err != nil {
		return Attr{}, Device{}, err
	}
	p, err := w.found()
	if err != nil {
		return Attr{}, Device{}, err
	}
	return p.Node.Attr(), p.Device(), nil
}

// lastLink returns following for stat(2) or lstat(2).
func lastLink(follow bool) following {
	if follow {
		return always
	}
	return atSlash
}

// LookupDir resolves the path of a directory that v may search: chdir(2), chroot(2).
func (v *View) LookupDir(at Place, path string) (Place, error) {
	p, err := v.Lookup(at, path, true)
	if err != nil {
		return Place{}, err
	}
	if _, err := p.directory(); err != nil {
		return Place{}, err
	}
	if !v.Who.May(p.Node.Attr(), ToExecute) {
		return Place{}, linux.EACCES
	}
	return p, nil
}

// Path returns the absolute path of a directory as v sees it (getcwd(2)). Errors: ENOENT if the
// directory has been removed or is not reachable from v's root.
func (v *View) Path(p Place) (string, error) {
	path := ""
	for p != v.Root {
		up := v.Tree.parent(p)
		if up == p {
			return "", linux.ENOENT
		}
		name, ok := v.nameIn(up, p)
		if !ok {
			return "", linux.ENOENT
		}
		path = "/" + name + path
		p = up
	}
	if path == "" {
		return "/", nil
	}
	return path, nil
}

// nameIn returns the name of the directory p in its parent directory (the parameter up).
func (v *View) nameIn(up, p Place) (string, bool) {
	for p.mount != up.mount {
		at := p.mount.at.Load()
		if at == nil { // another thread moves the mount
			return "", false
		}
		p = *at
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
