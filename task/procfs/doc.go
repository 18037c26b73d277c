// Package procfs is the part of /proc about processes: a directory for each process, as ps, top, lsof and gdb read it
// (proc(5)).
//
// Processes is an extension of the file system of /proc of package fs/pseudo, which has the files about the machine. A node
// is a small value (process, thread, kind of file); all that it shows comes from a Source when it is read. So an entry
// disappears with its process, and an open file of an ended process returns ESRCH.
//
// Who may see what follows Linux: files have the owner of the process, or root if it is not dumpable; memory, environment
// and links to open files need the permission to trace the process.
//
// Read source.go (what is shown), nodes.go (the tree), format.go (the texts).
package procfs
