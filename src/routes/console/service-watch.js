/** Parts of the console about services of this program. */
import { byId, isIn } from './session.js'

/**
 * A part that asks its service every `everyMs`, while somebody looks on and the service runs. `name`: its section is
 * `{name}-part`, its messages stand in `{name}-said`.
 */
export function watchService(name, ask, everyMs) {
  let timer
  let state
  const say = (text) => {
    byId(`${name}-said`).textContent = text
  }

  async function look() {
    clearTimeout(timer)
    if (!isIn() || state !== 'running') return
    if (!document.hidden) {
      try {
        await ask()
      } catch (error) {
        if (!isIn()) return
        say(error.message)
      }
    }
    clearTimeout(timer)
    timer = setTimeout(() => void look(), everyMs)
  }

  /** `now`: what the overview says of the service: running, starting, or undefined where this program does not run it. */
  function follow(now) {
    if (now === state) return
    state = now
    byId(`${name}-part`).hidden = now === undefined
    document.querySelector(`nav [data-part=${name}]`).hidden = now === undefined
    byId(`${name}-part`).classList.toggle('waiting', now === 'starting')
    say(now === 'starting' ? 'The service is starting.' : '')
    void look()
  }

  return { look, follow }
}
