/** The admin key, for as long as this tab is open, and the admin routes that it opens. */

export const prefix = document.body.dataset.prefix
export const byId = (id) => document.getElementById(id)

const place = 'sluice-key'
let key = sessionStorage.getItem(place) ?? ''
let whenOut = () => undefined

export const isIn = () => key !== ''

/** Tries a key. Throws a message for people where it is refused. */
export async function signIn(tried) {
  key = tried
  await ask('overview')
  sessionStorage.setItem(place, key)
}

/** Forgets the key; `message` is shown at the login. */
export function signOut(message = '') {
  sessionStorage.removeItem(place)
  key = ''
  whenOut(message)
}

/** `act` is called with a message whenever the key is forgotten. */
export function onOut(act) {
  whenOut = act
}

/** An admin route's answer. Throws a message for people; a refused key is forgotten. */
export async function ask(path, method = 'GET', body = undefined) {
  return JSON.parse(await askText(path, method, body))
}

/** The same where the answer is no JSON. */
export async function askText(path, method = 'GET', body = undefined) {
  const answer = await fetch(`${prefix}/admin/${path}`, {
    method,
    headers: { authorization: `Bearer ${key}` },
    cache: 'no-store',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (answer.status === 401) {
    const message = 'The gateway does not take this key.'
    signOut(message)
    throw new Error(message)
  }
  const text = await answer.text()
  if (!answer.ok) throw new Error(text)
  return text
}
