// Package procfs implements the part of /proc about processes: a directory for each process, as ps, top, lsof and gdb read
// it (proc(5)).
//
// Processes is an extension of the file system of /proc in package fs/pseudo, which has the files about the machine. A node
// is a small value (process, thread, kind of file). Its content comes from a Source when the node is read. An entry
// therefore disappears with its process, and reading an open file of an ended process returns ESRCH.
//
// Access follows Linux: a file belongs to the user of the process, or to root if the process is not dumpable. Memory,
// environment and links to open files require the permission to trace the process.
//
// Reading order: source.go (the information), nodes.go (the tree), format.go (the texts).
package procfs
