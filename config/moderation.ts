import { maybeText, reloadable, secret } from './setting.js'

/** Who may decide what is served. */
export const moderation = {
  adminApiKey: reloadable(
    secret(
      maybeText({
        env: 'ADMIN_API_KEY',
        allowed: '8 to 512 printable characters without blanks',
        shape: /^[\x21-\x7e]{8,512}$/,
        why:
          'Key of the admin routes and of the console; without it and ADMIN_API_KEY_FILE one is made and kept below ' +
          'DATA_PATH.',
      }),
    ),
  ),
  adminApiKeyFile: reloadable(
    maybeText({
      env: 'ADMIN_API_KEY_FILE',
      allowed: 'a file',
      why: 'File that holds the admin key; goes over ADMIN_API_KEY.',
    }),
  ),
}
