// How are elements made? Text always goes in as text, never as markup.

type Child = Node | string;

export function el(tag: string, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElement {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** A button that does `act`. */
export function button(label: string, act: () => void): HTMLElement {
  const node = el("button", { type: "button" }, label);
  node.addEventListener("click", act);
  return node;
}

/** Copy text, also where the page may not use the clipboard directly. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { style: "position:fixed;opacity:0" }) as HTMLTextAreaElement;
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** Say on the button itself that it has worked. */
export function flash(node: HTMLElement, text: string): void {
  const old = node.textContent;
  node.textContent = text;
  setTimeout(() => (node.textContent = old), 1200);
}
