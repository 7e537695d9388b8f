package catalogview

import "github.com/lakefs-mount/lakefs-mount/objectstore"

// Wrote says that the mount made o: from now on it is at o.Location, in
// listings and look-ups alike. No request is made, and nothing is waited for.
func (v *View) Wrote(o objectstore.Object) {}

// Removed says that the mount removed what was at loc (of a directory, with the
// "/": all below it). No request is made, and nothing is waited for.
func (v *View) Removed(loc objectstore.Location) {}

// Stale says that what the View answered of the object loc was found to be no
// longer so: the next look-up asks the store for it, and no listing is believed
// about it until one that began later is whole, or the TTL is over. No request
// is made, and nothing is waited for.
func (v *View) Stale(loc objectstore.Location) {}
