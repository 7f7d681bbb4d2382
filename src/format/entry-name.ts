const shape = /^[A-Za-z0-9._-]{1,128}$/

/** Names that every object has a property for: as keys of an object they would be found although nobody put them there. */
const inherited = new Set(Object.getOwnPropertyNames(Object.prototype))

/** Whether a name is the name of one file or folder, with no way out of the folder above it. */
export function isEntryName(name: string): boolean {
  return shape.test(name) && !name.includes('..') && name !== '.' && !inherited.has(name)
}
