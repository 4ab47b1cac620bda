"""Managed fields: who owns which field of an object, and server-side apply, which goes by it.

Owners are kept in ``metadata.managedFields``. Everything here is a pure function of documents, the
kind's structural type and the time; nothing is stored, so a dry run is a call whose result is
thrown away. A kind has one version here: entries of other versions are kept untouched.

    elements, fieldsets     a path's steps; sets of paths, in the form in which they are shown
    shapes                  how values are taken apart, by type
    comparing, extracting   from documents to sets
    merging, pruning        from documents and sets to documents
    entries                 the owners as metadata shows them
    tracking, applying      what a write does to owners; what an apply does to the object

Sources: sigs.k8s.io/structured-merge-diff v6, k8s.io/apimachinery/pkg/util/managedfields.
"""

from __future__ import annotations

from fakeapi.api.managedfields.applying import Configuration, apply
from fakeapi.api.managedfields.tracking import Writer, track_create, track_update

__all__ = ["Configuration", "Writer", "apply", "track_create", "track_update"]
