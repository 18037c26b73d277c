// Package server serves a folder of the host by 9P2000.L (package ninep), to a client that is not trusted.
//
// # The client cannot leave the folder
//
// A FID is a descriptor opened with O_PATH, never a path. Names have no slash and are neither "." nor "..", so each
// system call resolves one component; files are opened by openat2(2) with RESOLVE_BENEATH, RESOLVE_NO_MAGICLINKS
// and RESOLVE_NO_SYMLINKS. The server follows no symbolic link: the client resolves them in its own tree. A
// directory that a process of the host moves out of the folder stays reachable by a FID that it has, as by any
// descriptor. Only regular files and directories are opened, never devices, FIFOs or sockets of the host.
//
// # Owners
//
// The server acts as one user. Files of this user and of its groups belong to the client's user and group, as it
// gives them in Attach; all others belong to OtherUser. If the host denies an operation to the server, the client cannot
// do it either, whatever its user.
//
// A client can have owners, set-user-ID and set-group-ID bits, and device files that are not
// real on the host. They are in the extended attribute user.loam of the file (owner.go). A file with
// this attribute has the sticky bit, so that other files cost no call to look for it. A device file is an empty
// regular file of the host. Symbolic links, FIFOs and sockets are real; they can have no such attribute, so
// their owner cannot be changed.
//
// # Bounds
//
// A client has at most Config.FIDs FIDs, of one or two descriptors each, messages of at most Config.Size bytes, and
// maxRunning requests at once. Requests are served in their order by one goroutine, which owns the FIDs; long
// requests (reads and writes if other requests are waiting, fsync, whole lists) run in goroutines of their own, with
// a reference to their FID.
//
// Reading order: server.go and session.go; fid.go, open.go, names.go, attr.go, owner.go, list.go, xattr.go. process.go runs
// the server as a process of its own, with no privileges and the folder's user.
package server
