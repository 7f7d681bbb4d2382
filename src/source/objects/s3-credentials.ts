import { readFileSync } from 'node:fs'
import type { S3Credentials } from './s3-requests.js'

/**
 * Credentials out of a file in the form that AWS's programs share: sections in brackets, `name = value` a line. The section
 * `default` is used. A text: why there are none; it holds nothing of the file.
 */
export function readCredentials(path: string): S3Credentials | string {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    return `${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`
  }
  const values = new Map<string, string>()
  let section = ''
  for (const line of text.split(/\r?\n/)) {
    const [, name] = /^\s*\[\s*([^\]]*?)\s*\]/.exec(line) ?? []
    const [, key = '', value = ''] = /^\s*([a-z_]+)\s*=\s*(\S+)\s*$/.exec(line) ?? []
    if (name !== undefined) section = name
    else if (section === 'default' && key !== '') values.set(key, value)
  }
  const accessKeyId = values.get('aws_access_key_id')
  const secretAccessKey = values.get('aws_secret_access_key')
  const sessionToken = values.get('aws_session_token')
  if (accessKeyId === undefined || secretAccessKey === undefined)
    return `${path} has no aws_access_key_id with aws_secret_access_key in [default]`
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) }
}

/** Credentials of a file that another program may replace: temporary ones run out. */
export class CredentialsFile {
  #current: S3Credentials

  /** Throws where the file has none. */
  constructor(private readonly path: string) {
    const read = readCredentials(path)
    if (typeof read === 'string') throw new Error(`AWS_SHARED_CREDENTIALS_FILE: ${read}`)
    this.#current = read
  }

  get current(): S3Credentials {
    return this.#current
  }

  /** Reads the file again; true where it has others now. */
  renew(): boolean {
    const read = readCredentials(this.path)
    if (typeof read === 'string') return false
    const { accessKeyId, secretAccessKey, sessionToken } = this.#current
    const isSame =
      read.accessKeyId === accessKeyId &&
      read.secretAccessKey === secretAccessKey &&
      read.sessionToken === sessionToken
    this.#current = read
    return !isSame
  }
}
