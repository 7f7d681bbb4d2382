/** `W/` in front makes a tag weak; between the quotes stands anything but quotes and controls (RFC 9110 section 8.8.3). */
const tagShape = /(W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g

/** If-Match: `*`, or one of the listed tags is strong and equal. Whatever is no tag matches nothing. */
export function matchesStrongly(list: string, entityTag: string | undefined): boolean {
  return matches(list, entityTag, false)
}

/** If-None-Match: `*`, or one of the listed tags is equal, weak or not. */
export function matchesWeakly(list: string, entityTag: string | undefined): boolean {
  return matches(list, entityTag, true)
}

function matches(list: string, entityTag: string | undefined, weakToo: boolean): boolean {
  if (list.trim() === '*') return true
  if (entityTag === undefined) return false
  for (const [, weak, opaque] of list.matchAll(tagShape)) {
    if (opaque === entityTag && (weakToo || weak === undefined)) return true
  }
  return false
}
