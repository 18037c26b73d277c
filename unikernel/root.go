package unikernel

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"loam/unikernel/rootfs"
)

// The root folder of a Linux program (Options.Root). An image of a container also says which program to run, and how.
// The command line takes precedence, as it does for docker run.

// bytesPerName is the memory that a machine needs for each file of its root folder, in addition to the content.
const bytesPerName = 2 << 10

// takeRoot reads the root folder, unless it is on a disk or shared with the host, and determines the program and its
// arguments.
func (o *Options) takeRoot() error {
	if o.Target.Platform != Machine {
		return errNeedsMachine(cmp.Or(strings.Join(o.Target.Args, " "), o.Root))
	}
	if err := o.Machine.check(); err != nil {
		return err
	}
	var config rootfs.Config
	if !o.RootShared && !isImage(o.Root) {
		root, err := o.readRoot()
		if err != nil {
			return err
		}
		o.root = root.Archive
		if root.Devices > 0 {
			fmt.Fprintf(os.Stderr, "loam: --root %s: %d device files outside of /dev are left out\n", o.Root, root.Devices)
		}
		if root.Config != nil {
			config = *root.Config
			o.applyConfig(config)
		}
	}
	entrypoint, args := config.Entrypoint, append(o.Target.Args, o.Args...)
	if o.Entrypoint != nil {
		entrypoint, config.Cmd = nil, nil
		if *o.Entrypoint != "" {
			entrypoint = []string{*o.Entrypoint}
		}
	}
	if len(args) == 0 {
		args = config.Cmd
	}
	if o.Args = append(entrypoint[:len(entrypoint):len(entrypoint)], args...); len(o.Args) == 0 {
		o.closeRoot()
		return errorf("name a program of it, such as /bin/sh", "--root %s names no program", o.Root)
	}
	return nil
}

// IsRootFolder reports whether name is a folder that a guest can use as its root (Options.RootShared). A container image is
// not such a folder.
func IsRootFolder(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.IsDir() && !rootfs.IsLayout(name)
}

// withRootFolder adds the shared folder for a root that is a folder of the host itself.
func (o *Options) withRootFolder() {
	if o.RootShared {
		root := Shared{Host: o.Root, Guest: "/", NoCache: o.RootNoCache, root: true}
		o.Shared = slices.Insert(slices.Clone(o.Shared), 0, root)
	}
}

// readRoot reads a root folder that is copied to the guest.
func (o *Options) readRoot() (*rootfs.Root, error) {
	root, err := rootfs.Source{
		Name: o.Root, Bytes: int64(o.Machine.Memory), Names: int(o.Machine.Memory / bytesPerName),
		NewFile: func() (*os.File, error) { return memoryFile("root") },
	}.Read()
	var own *rootfs.Error
	if errors.As(err, &own) {
		return nil, errorf(own.Next, "--root %s: %s", o.Root, own.What)
	}
	if err != nil {
		return nil, fmt.Errorf("--root %s: %w", o.Root, err)
	}
	return root, nil
}

// applyConfig uses the configuration of an image, where the user has not chosen another value. Variables of this
// process's environment are not passed to the program of an image.
func (o *Options) applyConfig(c rootfs.Config) {
	o.baseEnv = append([]string{"PATH=" + imagePath}, c.Env...)
	if term, ok := os.LookupEnv("TERM"); ok {
		o.baseEnv = append([]string{"TERM=" + term}, o.baseEnv...)
	}
	if o.User == "" {
		o.User = c.User
	}
	if o.User == "" {
		o.User = "0" // user 0 has a home folder, unlike an empty user
	}
	if o.Folder == "" {
		o.Folder = path.Clean("/" + c.WorkingDir)
	}
}

// base returns the environment to which Options.Env is added. The guest sets HOME for a user.
func (o *Options) base() []string {
	if o.baseEnv != nil {
		return o.baseEnv
	}
	if o.User == "" {
		return os.Environ()
	}
	return slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "HOME=") })
}

// imagePath is the variable PATH of an image without one. Docker uses the same value.
const imagePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// closeRoot closes the archive of the root folder, unless it has been passed to the guest.
func (o *Options) closeRoot() {
	if o.root != nil {
		o.root.Close()
		o.root = nil
	}
}
