// Package event implements files from which a program only reads events: eventfd(2), signalfd(2), inotify(7) and the file of a
// process, pidfd_open(2). It does not depend on processes: an interface represents the source of events.
package event
