// Runs in a page of a browser, after `page.evaluate`: gives a list of what a reader could not see or read there.
// The last expression is the answer.
;(() => {
  const faults = []
  const name = (element) =>
    element.tagName.toLowerCase() +
    (element.id === '' ? '' : `#${element.id}`) +
    [...element.classList].map((one) => `.${one}`).join('')
  const root = document.documentElement
  if (root.scrollWidth > innerWidth) {
    const wide = [...document.querySelectorAll('body *')].find(
      (element) =>
        element.getBoundingClientRect().right > innerWidth + 0.5 && !scrolls(element.parentElement),
    )
    faults.push(`${root.scrollWidth} wide at ${innerWidth}: ${wide === undefined ? '?' : name(wide)}`)
  }
  if (root.lang === '') faults.push('no language')
  if (document.title.trim() === '') faults.push('no title')
  if (document.querySelector('meta[name=viewport]') === null) faults.push('no viewport')
  if (document.querySelector('link[rel=icon]') === null) faults.push('no icon: browsers ask for /favicon.ico')
  const titles = [...document.querySelectorAll('h1')].filter((element) => element.checkVisibility())
  if (titles.length !== 1) faults.push(`${titles.length} headings of the first rank`)
  for (const field of document.querySelectorAll('input:not([type=hidden]), select, textarea'))
    if (field.checkVisibility() && field.labels?.length === 0 && !field.ariaLabel)
      faults.push(`${name(field)} has no label`)
  for (const image of document.images)
    if (image.complete && image.naturalWidth === 0) faults.push(`${image.src} is no image`)
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement
    const text = node.data.trim()
    if (text === '' || element === null || /^(SCRIPT|STYLE|NOSCRIPT)$/.test(element.tagName)) continue
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue
    if (isCut(node, element)) faults.push(`cut off: ${name(element)} "${text.slice(0, 40)}"`)
    const ratio = contrast(element)
    const { fontSize, fontWeight } = getComputedStyle(element)
    const size = Number.parseFloat(fontSize)
    const needed = size >= 24 || (size >= 18.66 && Number(fontWeight) >= 700) ? 3 : 4.5
    if (ratio < needed && !isOff(element))
      faults.push(`contrast ${ratio.toFixed(2)}: ${name(element)} "${text.slice(0, 40)}"`)
    if (size < 12) faults.push(`letters of ${size}px: ${name(element)} "${text.slice(0, 40)}"`)
  }
  return [...new Set(faults)]

  function scrolls(element) {
    for (let one = element; one !== null; one = one.parentElement)
      if (/auto|scroll/.test(getComputedStyle(one).overflowX)) return true
    return false
  }

  /** Whether a box that hides what does not fit hides a part of this text. The whole may stand in a title. */
  function isCut(node, element) {
    const range = document.createRange()
    range.selectNodeContents(node)
    const text = range.getBoundingClientRect()
    for (let one = element; one !== null && one !== document.body; one = one.parentElement) {
      const { overflowX, overflowY, position } = getComputedStyle(one)
      if (position === 'absolute' && one.clientWidth <= 1) return false
      if (one.title !== '') return false
      const box = one.getBoundingClientRect()
      if (/hidden|clip/.test(overflowX) && (text.right > box.right + 1 || text.left < box.left - 1))
        return true
      if (/hidden|clip/.test(overflowY) && (text.bottom > box.bottom + 3 || text.top < box.top - 3))
        return true
      if (/auto|scroll/.test(overflowX + overflowY)) return false
    }
    return false
  }

  function isOff(element) {
    return element.closest(':disabled, [aria-disabled=true], [aria-hidden=true]') !== null
  }

  /** WCAG 2.2, 1.4.3: of the text's colour and what lies below it. */
  function contrast(element) {
    let below = [255, 255, 255, 1]
    const layers = []
    for (let one = element; one !== null; one = one.parentElement) {
      const colour = parts(getComputedStyle(one).backgroundColor)
      layers.push(colour)
      if (colour[3] === 1) break
    }
    if (layers.at(-1)[3] !== 1) below = parts(getComputedStyle(root).backgroundColor)
    if (below[3] !== 1)
      below = matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18, 1] : [255, 255, 255, 1]
    for (const layer of layers.reverse()) below = over(layer, below)
    const shown = over(parts(getComputedStyle(element).color), below)
    const [light, dark] = [luminance(shown), luminance(below)].sort((one, other) => other - one)
    return (light + 0.05) / (dark + 0.05)
  }

  function parts(colour) {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d')
    canvas.fillStyle = colour
    canvas.fillRect(0, 0, 1, 1)
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data
    return [red, green, blue, alpha / 255]
  }

  function over([red, green, blue, alpha], below) {
    const mixed = [red, green, blue].map((value, at) => value * alpha + below[at] * (1 - alpha))
    return [...mixed, 1]
  }

  function luminance([red, green, blue]) {
    const [r, g, b] = [red, green, blue].map((value) => {
      const part = value / 255
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
})()
