/** What of a folder is uploaded: the same for the commands and for the upload page in a browser. */

/** Patterns as `.gitignore` has them, in the folder itself: what they match is left out. It is never uploaded. */
export const ignoreFile = '.sluiceignore'

/** Why what lies at a path is left out; undefined: it is uploaded. Paths of folders end with a slash. */
export type FolderRule = (path: string) => string | undefined

/** Names that file managers of Windows and macOS write into folders that they show. */
const leftBehind = new Set(['.DS_Store', 'Thumbs.db', 'desktop.ini'])

function whyHidden(path: string): string | undefined {
  const name = path.replace(/\/$/, '').replace(/^.*\//s, '')
  if (leftBehind.has(name)) return 'hidden, because a file manager made it'
  // RFC 8615: what is in there is meant for everybody.
  if (!name.startsWith('.') || name === '.well-known') return undefined
  return 'hidden, because its name begins with a dot'
}

/**
 * The rule of a folder. `patterns`: the text of its `.sluiceignore`. `includeHidden`: `.git` and `.env` are uploaded, too. A walk
 * asks it of each folder before what lies in it.
 */
export async function folderRule(patterns: string | undefined, includeHidden = false): Promise<FolderRule> {
  const rules = patterns === undefined ? undefined : (await import('ignore')).default(lenient).add(patterns)
  return (path) => {
    const why = includeHidden ? undefined : whyHidden(path)
    if (why !== undefined) return why
    return rules?.ignores(path) === true ? `by ${ignoreFile}` : undefined
  }
}

const lenient = { allowRelativePaths: true }

/** The outermost folder around a file, or the file itself, that the rule leaves out, and why: what a walk would name. */
export function leftOutBy(
  rule: FolderRule,
  path: string,
): { readonly path: string; readonly why: string } | undefined {
  for (let end = path.indexOf('/'); end >= 0; end = path.indexOf('/', end + 1)) {
    const why = rule(path.slice(0, end + 1))
    if (why !== undefined) return { path: path.slice(0, end + 1), why }
  }
  const why = rule(path)
  return why === undefined ? undefined : { path, why }
}
