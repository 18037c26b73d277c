// Package ninep is a folder of the host as a file system: a client of 9P2000.L.
//
// The messages are in message.go, linux.go (what 9P2000.L adds to 9P2000) and loam.go (what Loam adds). Package
// fs/ninep/server is the other end. If a server does not support Loam's additions, the client works without them
// (plain.go): it sends more messages, appends are not atomic, and fallocate(2), O_TMPFILE, holes and the flags of
// renameat2(2) are not supported.
//
// # Nodes
//
// A file is known by its QID, and located by a directory and a name. The client keeps FIDs for directories that are
// in use, at most mostFIDs, and for open files; in requests about other files it sends the FID of the directory and
// the name. If the server finds another file at that name, a process of the host has changed the folder, and the node
// is a file without a name. Before the client itself removes a name of a file that may live on, it gets a FID for it.
//
// Equal nodes are the same file: nodes holds a weak pointer for each QID, so a node lives as long as something
// refers to it.
//
// # Cache modes
//
// With None the client caches nothing: each call sends a request to the server. Changes by the host are visible at
// once.
//
// With Loose the client keeps attributes, names (present and absent), targets of symbolic links and the content of
// small files for Config.Valid, a second. Changes by the client itself are visible at once, and changes by the host
// within that time. Writes are never delayed: write(2) returns when the host has the data. To save round trips, the
// client requests data in advance: at a second unknown name in a directory it lists the directory with all
// attributes, and at a second small file that is opened it fetches the next files of the listing.
//
// # Order of changes
//
// Replies of several requests can be processed in another order than the server executed them. So the client does not
// cache the reply to a request that began before the last change of the file or directory had ended: ticks count
// changes (FileSystem.tick). Changes of names are made one at a time (FileSystem.naming).
//
// # Locks
//
//	FileSystem.naming  <  FileSystem.mu  <  conn.sending  <  conn.mu
//	conn.reading  <  FileSystem.mu
//
// No request is made with mu held, except for Clunk, for which no caller waits.
//
// Reading order: message.go, conn.go, lead.go, system.go, node.go, directory.go, names.go, file.go, prefetch.go, ahead.go.
package ninep
