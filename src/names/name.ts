import { ownText } from '../format/own-text.js'
import type { Name } from './names-port.js'

/** A label of the domain name system has at most 63 characters (RFC 1035 section 2.3.4). */
const shape = /^[a-z0-9_-]{1,63}$/

/**
 * The name that a label spells: the last part between underscores is the base name, all before it the undername. Letter case
 * does not count. Undefined where no such name can exist.
 */
export function parseName(label: string): Name | undefined {
  const text = label.toLowerCase()
  if (!shape.test(text)) return undefined
  // A name may be kept for long, the host or path that it was cut from never is.
  const full = ownText(text)
  const cut = full.lastIndexOf('_')
  const basename = full.slice(cut + 1)
  const record = cut < 0 ? '@' : full.slice(0, cut)
  return basename === '' || record === '' ? undefined : { full, basename, record }
}
