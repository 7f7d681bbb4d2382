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
