const shape = /^[A-Za-z0-9._-]{1,128}$/

/** Names of properties that every object inherits: a look-up in an object would find them although nobody set them. */
const inherited = new Set(Object.getOwnPropertyNames(Object.prototype))

/** Whether a name names one file or folder inside its folder: no separator, and nothing that leads out of it. */
export function isEntryName(name: string): boolean {
  return shape.test(name) && !name.includes('..') && name !== '.' && !inherited.has(name)
}
