/** What people choose or drop, as files with paths. */
import { folderRule, ignoreFile, leftOutBy } from 'sluice/client/folder-rule'

/** Files of a chooser: those of a folder bring their path in it. */
export function chosenFiles(list) {
  return [...list].map((file) => ({ path: file.webkitRelativePath || file.name, file }))
}

function entriesOf(reader) {
  return new Promise((resolve, reject) => reader.readEntries(resolve, reject))
}

function fileOf(entry) {
  return new Promise((resolve, reject) => entry.file(resolve, reject))
}

async function* filesBelow(entry, path) {
  if (entry.isFile) {
    yield { path, file: await fileOf(entry) }
    return
  }
  const reader = entry.createReader()
  // A folder is read in pieces, the last of which is empty.
  for (let entries = await entriesOf(reader); entries.length > 0; entries = await entriesOf(reader))
    for (const inner of entries) yield* filesBelow(inner, `${path}/${inner.name}`)
}

/** Files that were dropped, folders opened. The list must be read before anything is waited for: it is emptied then. */
export async function droppedFiles({ items, files }) {
  const entries = [...items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry)
  if (entries.length === 0) return chosenFiles(files)
  const found = []
  for (const entry of entries) for await (const one of filesBelow(entry, entry.name)) found.push(one)
  return found
}

/** The name of the folder that all lie in, where they do. */
export function commonFolder(files) {
  const [first] = files
  const at = first === undefined ? -1 : first.path.indexOf('/')
  const folder = at < 0 ? '' : first.path.slice(0, at + 1)
  return folder !== '' && files.every(({ path }) => path.startsWith(folder)) ? folder : ''
}

/**
 * Files that are uploaded, and what is left out by the rule of the commands: hidden files and what the folder's own
 * `.sluiceignore` names. `leftOut`: lines for people. `hidden`: how many files are hidden, included or not. `folder`: of
 * `commonFolder`.
 */
export async function sorted(files, folder, includeHidden) {
  const own = folder === '' ? undefined : files.find(({ path }) => path === `${folder}${ignoreFile}`)
  const patterns = await own?.file.text()
  const [rule, strict] = [await folderRule(patterns, includeHidden), await folderRule(undefined)]
  const taken = []
  const reasons = new Map()
  let hidden = 0
  for (const one of files) {
    if (one === own) continue
    const path = one.path.slice(folder.length)
    if (leftOutBy(strict, path) !== undefined) hidden += 1
    const left = leftOutBy(rule, path)
    if (left === undefined) taken.push(one)
    else reasons.set(left.path, left.why)
  }
  return { taken, leftOut: [...reasons].map(([path, why]) => `${path}: ${why}`), hidden }
}
